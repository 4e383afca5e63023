/*!
 * \file settled.cc
 * \brief Whether all that a loop reads is settled, see instrument/quick_loops.py.
 */
#include "emulator/settled.h"

#include <cstring>
#include <utility>

#include "access.h"

namespace emulator {
namespace checked {
namespace {

const size_t kSide = 16;  // threads side by side read words side by side

// Whether `count` words from an offset on are settled.
bool are_settled(size_t word, size_t count) {
  const unsigned char* bytes = settled_words + word;
  const uint64_t all = settled_tag * 0x0101010101010101u;
  size_t i = 0;
  for (; i + sizeof all <= count; i += sizeof all)
    if (std::memcmp(bytes + i, &all, sizeof all) != 0) return false;
  for (; i < count; ++i)
    if (bytes[i] != settled_tag) return false;
  return true;
}

bool are_settled(const SettledReads& reads) {
  for (size_t i = 0; i < reads.turns; ++i)
    if (!are_settled(reads.first + i * reads.step, reads.width)) return false;
  return true;
}

bool includes(const SettledReads& known, const SettledReads& reads) {
  return known.version == __atomic_load_n(&settled_version, __ATOMIC_RELAXED) &&
         known.step == reads.step && known.turns == reads.turns && known.first <= reads.first &&
         reads.first + reads.width <= known.first + known.width;
}

bool find_settled(SettledReads* known, SettledReads reads) {
  if (includes(*known, reads)) return true;
  reads.version = __atomic_load_n(&settled_version, __ATOMIC_RELAXED);
  SettledReads wide = reads;  // for the threads beside, too
  if (reads.turns > 1) {
    wide.first = reads.first / kSide * kSide;
    wide.width = kSide;
  }
  if (!are_settled(wide)) {
    if (reads.turns == 1 || !are_settled(reads)) return false;
    wide = reads;
  }
  *known = wide;
  return true;
}

}  // namespace
}  // namespace checked
}  // namespace emulator

using namespace emulator::checked;

bool emulator_is_settled(const void* const* reads, long long turns) {
  State* s = state;
  if (s == nullptr || s->pending || s->watched) return false;
  uintptr_t first = reinterpret_cast<uintptr_t>(reads[0]);
  uintptr_t last = reinterpret_cast<uintptr_t>(reads[2]);
  const void* place = __builtin_return_address(0);
  intptr_t step = static_cast<intptr_t>(reinterpret_cast<uintptr_t>(reads[1]) - first), way;
  // An index that overflows on its way is not linear.
  if (__builtin_mul_overflow(step, static_cast<intptr_t>(turns - 1), &way)) return false;
  if (static_cast<intptr_t>(last - first) != way) return false;
  if (step < 0) std::swap(first, last), step = -step;
  if (((first | static_cast<uintptr_t>(step)) & 3) != 0) return false;
  if (!device_region.has(first) || !device_region.has(last)) return false;
  SettledReads wanted;
  wanted.first = (first - device_region.begin) >> 2;
  wanted.step = static_cast<size_t>(step) >> 2;
  wanted.turns = static_cast<size_t>(turns);
  wanted.width = 1;
  if (wanted.step <= 1) {  // one stretch of words, or one word
    wanted.width = wanted.step == 1 ? wanted.turns : 1;
    wanted.turns = wanted.step = 1;
  }
  const size_t at = reinterpret_cast<uintptr_t>(place) * 0x9e3779b97f4a7c15u >> 60;
  static_assert(sizeof s->settled_reads / sizeof s->settled_reads[0] == 16, "4 bits");
  if (!find_settled(&s->settled_reads[at], wanted)) return false;
  s->last_place = place;
  return true;
}

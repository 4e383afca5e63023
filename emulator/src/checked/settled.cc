/*!
 * \file settled.cc
 * \brief Whether all that a loop reads is settled, see instrument/quick_loops.py.
 */
#include "emulator/settled.h"

#include <algorithm>
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

// Whether one more read tells nothing new, if a thread of the block makes it before the next
// barrier: that is so from the third thread on.
bool is_settled_for_block(const State* s, const Word& word) {
  const Record last(__atomic_load_n(&word.write, __ATOMIC_RELAXED));
  const Record reader(__atomic_load_n(&word.read, __ATOMIC_RELAXED));
  if (last.low() != 15 || (reader.low() & (kAllocated | kPartly)) != kAllocated) return false;
  if (last.segment() >= unordered_first || reader.segment() < launch_first) return false;
  return (reader.low() & kSeveral) || (reader.flag() && reader.segment() >= s->interval_first);
}

// The same of a stretch of words. They are marked, and then looked at once more: whoever changes
// one after that sees the mark, and changes the version.
bool are_settled_for_block(const State* s, size_t first, size_t count) {
  const Word* words = device_region.words + first;
  const auto is_settled = [s](const Word& word) { return is_settled_for_block(s, word); };
  if (!std::all_of(words, words + count, is_settled)) return false;
  for (size_t i = 0; i < count; ++i) {
    const bool for_all = words[i].read & kSeveral;
    __atomic_store_n(&settled_words[first + i], for_all ? settled_tag : kSettledForBlock,
                     __ATOMIC_RELAXED);
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (std::all_of(words, words + count, is_settled)) return true;
  std::for_each(words, words + count, [](const Word& word) { unsettle_word(&word); });
  return false;
}

bool includes(const State* s, const SettledReads& known, const SettledReads& reads) {
  return known.version == __atomic_load_n(&settled_version, __ATOMIC_RELAXED) &&
         (known.interval == 0 || known.interval == s->interval_first) && known.step == reads.step &&
         known.turns == reads.turns && known.first <= reads.first &&
         reads.first + reads.width <= known.first + known.width;
}

bool find_settled(const State* s, SettledReads* known, SettledReads reads) {
  if (includes(s, *known, reads)) return true;
  reads.version = __atomic_load_n(&settled_version, __ATOMIC_RELAXED);
  SettledReads wide = reads;  // for the threads beside, too
  if (reads.turns > 1) {
    wide.first = reads.first / kSide * kSide;
    wide.width = kSide;
  }
  if (!are_settled(wide)) {
    wide = reads;
    if (reads.turns == 1) {
      if (!are_settled_for_block(s, reads.first, reads.width)) return false;
      wide.interval = s->interval_first;
    } else if (!are_settled(reads)) {
      return false;
    }
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
  if (!find_settled(s, &s->settled_reads[at], wanted)) return false;
  s->last_place = place;
  return true;
}

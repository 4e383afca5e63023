/*!
 * \file order.cc
 * \brief Segments: which access comes before which.
 */
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>

#include "state.h"

namespace emulator {
namespace checked {

__thread State* state EMULATOR_FAST_TLS = nullptr;
uint32_t launch_first = 1;

namespace {

std::atomic<uint32_t> last_segment(0);

// The block of each segment.
uint32_t* owners() {
  static uint32_t* const all = static_cast<uint32_t*>(
      mmap(nullptr, (kLastSegment + size_t(1)) * sizeof(uint32_t), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0));
  return all;
}

std::mutex fence_mutex;
std::set<uint32_t> fenced;
std::atomic<bool> any_fence(false);

bool has_fenced(uint32_t block) {
  std::lock_guard<std::mutex> lock(fence_mutex);
  return fenced.count(block) > 0;
}

}  // namespace

// Past the last one no race is reported any more: is_ordered says so.
uint32_t next_segment() {
  return std::min(last_segment.fetch_add(1, std::memory_order_relaxed) + 1, kLastSegment);
}

void reset_order() {
  fenced.clear();
  any_fence = false;
  if (last_segment > kLastSegment / 2) {
    forget_accesses();
    last_segment = 0;
  }
  launch_first = last_segment + 1;
}

void begin_interval(State* s) {
  s->interval_first = next_segment();
  owners()[s->interval_first] = s->block;
}

void set_thread(State* s, int thread) {
  uint64_t segment = std::max(s->interval_first, s->met[thread]);
  s->who = segment << kThreadBits | static_cast<unsigned>(thread);
}

bool is_other_block(const State* s, const Record& record) {
  return owners()[record.segment()] != s->block;
}

bool is_ordered(const State* s, const Record& record) {
  uint32_t segment = record.segment();
  if (segment < launch_first || segment == kLastSegment) return true;
  // A fence after the write, and one before what is done now (with an atomic in between that
  // tells when): the way in which a last block finds what all others left. Enough is taken for
  // granted here that no correct program is accused.
  if (is_other_block(s, record)) return any_fence && has_fenced(owners()[segment]);
  int other = static_cast<int>(record.thread()), mine = s->thread();
  if (other == mine || segment < s->interval_first) return true;
  return other / kWarp == mine / kWarp && s->met[other] > segment && s->met[mine] > segment;
}

void note_fence(State* s) {
  std::lock_guard<std::mutex> lock(fence_mutex);
  fenced.insert(s->block);
  any_fence = true;
}

bool has_fences() { return any_fence; }

namespace {

uint3 spread(uint64_t number, const dim3& size) {
  return {static_cast<unsigned>(number % size.x), static_cast<unsigned>(number / size.x % size.y),
          static_cast<unsigned>(number / size.x / size.y)};
}

}  // namespace

Who who_of(const State* s, const Record& record) {
  Who who;
  who.known = true;
  who.block = spread(owners()[record.segment()], s->grid->config.grid);
  who.thread = spread(record.thread(), s->grid->config.block);
  return who;
}

Who who_now() {
  Who who;
  who.known = true;
  who.block = blockIdx;
  who.thread = threadIdx;
  return who;
}

}  // namespace checked
}  // namespace emulator

// For warp.cc and block.cc.
#include "../checked.h"

namespace emulator {
namespace checked {

void warp_met(int first_thread, unsigned lanes) {
  State* s = state;
  uint32_t segment = next_segment();
  owners()[segment] = s->block;
  for (int lane = 0; lane < kWarp; ++lane)
    if (lanes >> lane & 1) s->met[first_thread + lane] = segment;
  set_thread(s, s->thread());
}

}  // namespace checked
}  // namespace emulator

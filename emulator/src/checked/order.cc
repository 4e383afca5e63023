/*!
 * \file order.cc
 * \brief Segments: which access comes before which.
 */
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "../checked.h"
#include "fences.h"
#include "state.h"
#include "streams.h"

namespace emulator {
namespace checked {

__thread State* state EMULATOR_FAST_TLS = nullptr;
uint32_t launch_first = 1;

namespace {

std::atomic<uint32_t> last_segment(0);

// Of a segment that begins with its thread's fence.
const uint32_t kBehindFence = 1u << 31;

// The block of each segment.
uint32_t* owners() {
  static uint32_t* const all = static_cast<uint32_t*>(
      mmap(nullptr, (kLastSegment + size_t(1)) * sizeof(uint32_t), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0));
  return all;
}

}  // namespace

bool is_owner(uintptr_t address) {
  return address - reinterpret_cast<uintptr_t>(owners()) < kLastSegment * sizeof(uint32_t);
}

namespace {

// Recursive: cudaMemcpy2D and its like may be made of copies.
std::recursive_mutex& turns() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

}  // namespace

Work::Work() { turns().lock(); }

Work::~Work() {
  write_counts(false);
  turns().unlock();
}

// Past the last one no race is reported any more: is_ordered says so.
uint32_t next_segment() {
  return std::min(last_segment.fetch_add(1, std::memory_order_relaxed) + 1, kLastSegment);
}

void reset_order() {
  forget_fences();
  if (last_segment > kLastSegment / 2) {
    forget_accesses();
    forget_host_accesses();
    last_segment = 0;
  }
  launch_first = last_segment + 1;
}

void begin_interval(State* s) {
  s->interval_first = next_segment();
  owners()[s->interval_first] = s->block;
}

void set_thread(State* s, int thread) {
  uint64_t segment = std::max({s->interval_first, s->met[thread], s->fenced[thread]});
  s->who = segment << kThreadBits | static_cast<unsigned>(thread);
}

bool is_other_block(const State* s, const Record& record) {
  return block_of(record.segment()) != s->block;
}

uint32_t block_of(uint32_t segment) { return owners()[segment] & ~kBehindFence; }

bool is_behind_fence(uint64_t who) { return (owners()[who >> kThreadBits] & kBehindFence) != 0; }

uint32_t segment_now() { return std::min<uint32_t>(last_segment, kLastSegment); }

uint32_t begin_fence_segment(State* s) {
  const int thread = s->thread();
  s->fenced[thread] = next_segment();
  owners()[s->fenced[thread]] = s->block | kBehindFence;
  set_thread(s, thread);
  return s->fenced[thread];
}

bool is_ordered(const State* s, const Record& record) {
  uint32_t segment = record.segment();
  if (segment < launch_first || segment == kLastSegment) return true;
  if (is_other_block(s, record)) return is_visible(s, record);
  int other = static_cast<int>(record.thread()), mine = s->thread();
  if (other == mine || segment < s->interval_first) return true;
  bool met = other / kWarp == mine / kWarp && s->met[other] > segment && s->met[mine] > segment;
  return met || is_visible(s, record);
}

namespace {

uint3 spread(uint64_t number, const dim3& size) {
  return {static_cast<unsigned>(number % size.x), static_cast<unsigned>(number / size.x % size.y),
          static_cast<unsigned>(number / size.x / size.y)};
}

}  // namespace

Who who_of(const State* s, const Record& record) {
  Who who;
  who.known = true;
  who.block = spread(block_of(record.segment()), s->grid->config.grid);
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

namespace emulator {
namespace checked {

void warp_met(int first_thread, unsigned lanes) {
  State* s = state;
  uint32_t segment = next_segment();
  owners()[segment] = s->block;
  for (int lane = 0; lane < kWarp; ++lane)
    if (lanes >> lane & 1) s->met[first_thread + lane] = segment;
  share_acquired(s, first_thread, lanes);
  set_thread(s, s->thread());
}

}  // namespace checked
}  // namespace emulator

/*!
 * \file fences.cc
 * \brief The fences of a launch, by block.
 */
#include "fences.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

namespace emulator {
namespace checked {
namespace {

struct Fence {
  uint32_t at;  // the segment that it begins
  int thread;
  uint32_t interval, met;  // when the block and the warp met last before it
};

struct Fences {
  std::vector<Fence> all;  // in order
  bool many = false;       // not all are known, so everything counts as fenced
};

// A thread that waits with a fence in its loop has any number of them.
const int kMostFences = 256;

// Of a thread that read what is volatile: it may have seen whatever there is now. What it reads is
// read after the hook, so no segment could be told there.
const uint32_t kUpToNow = UINT32_MAX;

std::mutex mutex;
auto& fences = *new std::unordered_map<uint32_t, Fences>;
std::atomic<bool> any(false);

unsigned char volatile_places[(1u << kPlaceBits) / 8];

bool covers(const Fence& fence, uint32_t segment, int thread) {
  if (fence.at <= segment) return false;
  if (fence.thread == thread || fence.interval > segment) return true;
  return fence.thread / kWarp == thread / kWarp && fence.met > segment;
}

void acquire(State* s, uint32_t segment) {
  s->acquired[s->thread()] = segment;
  s->acquired_most = std::max(s->acquired_most, segment);
}

}  // namespace

void note_fence(State* s) {
  const int thread = s->thread();
  std::lock_guard<std::mutex> lock(mutex);
  Fences& mine = fences[s->block];
  any = s->any_fence = true;
  if (++s->fences[thread] > kMostFences) {
    mine.many = true;
    return acquire(s, segment_now());
  }
  const uint32_t at = begin_fence_segment(s);
  mine.all.push_back({at, thread, s->interval_first, s->met[thread]});
  acquire(s, at);
}

void note_atomic(State* s) { acquire(s, segment_now()); }

void note_volatile_read(State* s) { acquire(s, kUpToNow); }

void share_acquired(State* s) {
  if (s->acquired_most == 0) return;
  s->acquired_by_all = std::min(s->acquired_most, segment_now());
  std::fill(s->acquired, s->acquired + kMaxThreads, 0);
  s->acquired_most = s->acquired_by_all;
}

void share_acquired(State* s, int first_thread, unsigned lanes) {
  if (s->acquired_most == s->acquired_by_all) return;
  uint32_t most = 0;
  for (int lane = 0; lane < kWarp; ++lane)
    if (lanes >> lane & 1) most = std::max(most, s->acquired[first_thread + lane]);
  most = std::min(most, segment_now());
  for (int lane = 0; lane < kWarp; ++lane)
    if (lanes >> lane & 1) s->acquired[first_thread + lane] = most;
}

void begin_fences(State* s) {
  if (s->acquired_most > 0) std::fill(s->acquired, s->acquired + kMaxThreads, 0);
  if (s->any_fence) {
    std::fill(s->fenced, s->fenced + kMaxThreads, 0);
    std::fill(s->fences, s->fences + kMaxThreads, 0);
  }
  s->any_fence = false;
  s->acquired_by_all = s->acquired_most = 0;
  s->glimpse = Glimpse();
}

void forget_fences() {
  std::lock_guard<std::mutex> lock(mutex);
  fences.clear();
  any = false;
}

bool has_fences() { return any; }

bool is_visible(const State* s, const Record& record) {
  const uint32_t known = std::max(s->acquired[s->thread()], s->acquired_by_all);
  if (!any || known == 0) return false;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = fences.find(block_of(record.segment()));
  if (found == fences.end()) return false;
  if (found->second.many) return true;
  for (const Fence& fence : found->second.all) {
    if (fence.at > known) return false;
    if (covers(fence, record.segment(), static_cast<int>(record.thread()))) return true;
  }
  return false;
}

void note_volatile_place(uint32_t place) {
  unsigned char* byte = &volatile_places[place / 8];
  const unsigned char bit = static_cast<unsigned char>(1u << place % 8);
  if (place == kNoPlace || (__atomic_load_n(byte, __ATOMIC_RELAXED) & bit) != 0) return;
  __atomic_fetch_or(byte, bit, __ATOMIC_RELAXED);
}

bool is_volatile_place(uint32_t place) {
  return (__atomic_load_n(&volatile_places[place / 8], __ATOMIC_RELAXED) >> place % 8 & 1) != 0;
}

}  // namespace checked
}  // namespace emulator

/*!
 * \file warp.cc
 * \brief Operations of the lanes of a warp, and what kernels call to wait.
 *
 * The lanes that name the same mask meet. The last one to come works out what each gets, before
 * anyone goes on, so that nobody's next operation can overwrite a value that is still needed.
 */
#define EMULATOR_RUNTIME
#include "emulator/warp.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "block.h"

namespace emulator {

uint64_t Block::wait_for_warp(Wait wait, unsigned mask, uint64_t value, int source) {
  int i = number(current_);
  Warp* warp = &warps_[i / kWarp];
  unsigned bit = 1u << (i % kWarp);
  current_->wait = wait;
  current_->mask = mask | bit;  // who calls takes part, named or not
  current_->value = value;
  current_->source = source;
  current_->fiber = nullptr;  // not suspended yet
  Thread* self = current_;
  warp->waiting |= bit;
  if (!complete_warp(warp, self->mask, wait)) suspend();
  return self->value;
}

// Lets the lanes that wait with this mask go on if nobody is missing.
bool Block::complete_warp(Warp* warp, unsigned mask, Wait wait) {
  if (mask & ~(warp->waiting | warp->finished)) return false;
  unsigned group = members(warp, mask, wait);
  if (mask & ~(group | warp->finished)) return false;
  Thread* first = &threads_[(warp - warps_) * kWarp];
  give_values(first, group, wait);
  warp->waiting &= ~group;
  for (int lane = 0; lane < kWarp; ++lane)
    if ((group >> lane & 1) && first[lane].fiber != nullptr) ready_.push(&first[lane]);
  return true;
}

// The waiting lanes of the same mask and operation.
unsigned Block::members(const Warp* warp, unsigned mask, Wait wait) const {
  const Thread* first = &threads_[(warp - warps_) * kWarp];
  unsigned group = 0;
  for (int lane = 0; lane < kWarp; ++lane)
    if ((warp->waiting & mask) >> lane & 1)
      if (first[lane].mask == mask && first[lane].wait == wait) group |= 1u << lane;
  return group;
}

void Block::give_values(Thread* first, unsigned group, Wait wait) {
  uint64_t given[kWarp];
  unsigned votes = 0;
  for (int lane = 0; lane < kWarp; ++lane) {
    if (!(group >> lane & 1)) continue;
    given[lane] = first[lane].value;
    if (given[lane] != 0) votes |= 1u << lane;
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    if (!(group >> lane & 1)) continue;
    int source = first[lane].source & (kWarp - 1);
    if (wait == Wait::kBallot) first[lane].value = votes;
    // A lane that takes no part has nothing to give; the GPU leaves the result undefined.
    if (wait == Wait::kShuffle && (group >> source & 1)) first[lane].value = given[source];
  }
}

unsigned Block::wait_for_active() {
  Thread* self = current_;
  self->wait = Wait::kActive;
  suspend();
  return static_cast<unsigned>(self->value);
}

// When nothing else can run: those that asked who is active are, warp by warp. A GPU would have
// run them side by side. False if there are none.
bool Block::converge() {
  for (int first = 0; first < count_; first += kWarp) {
    uint64_t active = 0;
    int end = std::min(first + kWarp, count_);
    for (int i = first; i < end; ++i)
      if (!threads_[i].finished && threads_[i].wait == Wait::kActive) active |= 1ull << (i - first);
    for (int i = first; i < end; ++i) {
      if (!(active >> (i - first) & 1)) continue;
      threads_[i].wait = Wait::kWarp;  // no more
      threads_[i].value = active;
      ready_.push(&threads_[i]);
    }
  }
  return !ready_.empty();
}

namespace {

Block* block_or_abort(const char* function) {
  Block* block = Block::running();
  if (block != nullptr) return block;
  std::fprintf(stderr, "emulated GPU: %s was called outside of a kernel\n", function);
  std::abort();
}

}  // namespace
}  // namespace emulator

using emulator::block_or_abort;
using emulator::Wait;

void __syncthreads() { block_or_abort("__syncthreads")->wait_for_block(0); }

int __syncthreads_count(int predicate) {
  return block_or_abort("__syncthreads_count")->wait_for_block(predicate);
}

int __syncthreads_or(int predicate) {
  return block_or_abort("__syncthreads_or")->wait_for_block(predicate) != 0;
}

int __syncthreads_and(int predicate) {
  return block_or_abort("__syncthreads_and")->wait_for_block(!predicate) == 0;
}

void emulator_syncwarp(unsigned mask) {
  block_or_abort("__syncwarp")->wait_for_warp(Wait::kWarp, mask, 0, 0);
}

unsigned emulator_ballot(unsigned mask, int predicate) {
  return static_cast<unsigned>(
      block_or_abort("__ballot_sync")->wait_for_warp(Wait::kBallot, mask, predicate != 0, 0));
}

uint64_t emulator_exchange(unsigned mask, uint64_t value, int source) {
  return block_or_abort("__shfl_sync")->wait_for_warp(Wait::kShuffle, mask, value, source);
}

int emulator_lane() { return block_or_abort("__shfl_sync")->lane(); }

unsigned __activemask() { return block_or_abort("__activemask")->wait_for_active(); }

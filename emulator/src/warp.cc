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
#include "checked.h"
#ifdef EMULATOR_CHECKED
#include "checked/threads.h"
#endif

namespace emulator {

uint64_t Block::wait_for_warp(Wait wait, unsigned mask, uint64_t value, int source,
                              const void* place, uint64_t* all) {
  stop_if_wanted(place);
  int i = number(current_);
  Warp* warp = &warps_[i / kWarp];
  unsigned bit = 1u << (i % kWarp);
  if ((mask & bit) == 0) EMULATOR_CHECK(unnamed(mask, place));
  current_->wait = wait;
  current_->mask = mask | bit;  // who calls takes part, named or not
  current_->value = value;
  current_->source = source;
  current_->place = place;
  current_->all = all;
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
  EMULATOR_CHECK(warp_met(static_cast<int>(warp - warps_) * kWarp, group));
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

// The two builds begin with different ones.
#ifdef EMULATOR_CHECKED
const unsigned kFirstOfUndefined = 0;
#else
const unsigned kFirstOfUndefined = 1;
#endif

void Block::give_values(Thread* first, unsigned group, Wait wait) {
  uint64_t given[kWarp] = {};
  unsigned votes = 0;
  for (int lane = 0; lane < kWarp; ++lane) {
    if (!(group >> lane & 1)) continue;
    given[lane] = first[lane].value;
    if (given[lane] != 0) votes |= 1u << lane;
  }
  if (wait == Wait::kShuffle) EMULATOR_CHECK(shuffled(first, number(first), group, count_));
  for (int lane = 0; lane < kWarp; ++lane) {
    if (!(group >> lane & 1)) continue;
    int source = first[lane].source & (kWarp - 1);
    if (wait == Wait::kBallot) first[lane].value = votes;
    if (wait == Wait::kGather) {
      first[lane].value = group;
      std::copy(given, given + kWarp, first[lane].all);
    }
    if (wait == Wait::kShuffle)
      first[lane].value = group >> source & 1 ? given[source] : undefined();
  }
}

// What a lane gets from one that takes no part, which a GPU leaves undefined: too large or too
// small a number of any type, so that a sum, a maximum and a minimum show it.
uint64_t Block::undefined() {
  return ++undefined_ % 2 == kFirstOfUndefined ? 0x7f7f7f7f7f7f7f7f : 0xff7f7f7fff7f7f7f;
}

unsigned Block::wait_for_active(const void* site) {
  stop_if_wanted(site);
  Thread* self = current_;
  self->wait = Wait::kActive;
  self->value = reinterpret_cast<uintptr_t>(site);
  suspend();
  return static_cast<unsigned>(self->value);
}

// When nothing else can run: those of a warp that asked in one place who is active are. A GPU
// would have run them side by side, and those in another branch apart. False if there are none.
bool Block::converge() {
  for (int first = 0; first < count_; ++first) {
    if (threads_[first].finished || threads_[first].wait != Wait::kActive) continue;
    const uint64_t site = threads_[first].value;
    const int begin = first / kWarp * kWarp, end = std::min(begin + kWarp, count_);
    Queue group;
    uint64_t active = 0;
    for (int i = first; i < end; ++i) {
      Thread* thread = &threads_[i];
      if (thread->finished || thread->wait != Wait::kActive || thread->value != site) continue;
      active |= 1ull << (i - begin);
      thread->wait = Wait::kWarp;  // no more
      group.push(thread);
    }
    for (int i = first; i < end; ++i)
      if (active >> (i - begin) & 1) threads_[i].value = active;
    ready_.take_all(&group);
  }
  return !ready_.empty();
}

// So many turns a thread has before others run: most locks are free at once.
const int kTurns = 16;

void Block::turn(const void* place) {
  stop_if_wanted(place);
  if (in_loops_) return;
  if (turning_ != current_) turning_ = current_, turns_ = 0;
  if (++turns_ % kTurns != 0) return;
  current_->wait = Wait::kLoop;
  in_loop_.push(current_);
  suspend();
}

// When nothing else can run: the threads that wait in loops look again.
bool Block::turn_again() {
  ready_.take_all(&in_loop_);
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

using emulator::Block;
using emulator::block_or_abort;
using emulator::Wait;

// Where the program called.
#define PLACE __builtin_return_address(0)

void emulator_kernel_returns() { EMULATOR_CHECK(thread_leaves(PLACE, false)); }
void emulator_kernel_ends() { EMULATOR_CHECK(thread_leaves(PLACE, true)); }

void emulator_turn() {
  if (Block* block = Block::running()) block->turn(PLACE);
}

void emulator_wait_begins() { EMULATOR_CHECK(wait_begins()); }
void emulator_wait_ends() { EMULATOR_CHECK(wait_ends()); }

void __syncthreads() { block_or_abort("__syncthreads")->wait_for_block(0, PLACE); }

int __syncthreads_count(int predicate) {
  return block_or_abort("__syncthreads_count")->wait_for_block(predicate, PLACE);
}

int __syncthreads_or(int predicate) {
  return block_or_abort("__syncthreads_or")->wait_for_block(predicate, PLACE) != 0;
}

int __syncthreads_and(int predicate) {
  return block_or_abort("__syncthreads_and")->wait_for_block(!predicate, PLACE) == 0;
}

void emulator_syncwarp(unsigned mask) {
  block_or_abort("__syncwarp")->wait_for_warp(Wait::kWarp, mask, 0, 0, PLACE);
}

unsigned emulator_ballot(unsigned mask, int predicate) {
  return static_cast<unsigned>(block_or_abort("__ballot_sync")
                                   ->wait_for_warp(Wait::kBallot, mask, predicate != 0, 0, PLACE));
}

uint64_t emulator_exchange(unsigned mask, uint64_t value, int source) {
  return block_or_abort("__shfl_sync")->wait_for_warp(Wait::kShuffle, mask, value, source, PLACE);
}

unsigned emulator_gather(unsigned mask, uint64_t value, uint64_t* values) {
  return static_cast<unsigned>(block_or_abort("__reduce_add_sync or its like")
                                   ->wait_for_warp(Wait::kGather, mask, value, 0, PLACE, values));
}

int emulator_lane() { return block_or_abort("__shfl_sync")->lane(); }

// The place is the call and, above the bits of an address, its number.
unsigned emulator_active(int place) {
  uintptr_t site = reinterpret_cast<uintptr_t>(PLACE);
  site ^= static_cast<uintptr_t>(place) << 48;
  return block_or_abort("__activemask")->wait_for_active(reinterpret_cast<const void*>(site));
}

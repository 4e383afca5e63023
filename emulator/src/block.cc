/*!
 * \file block.cc
 * \brief The scheduler of a block's threads.
 */
#define EMULATOR_RUNTIME
#include "block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>

#include "checked.h"
#include "emulator/shared.h"
#include "error.h"
#include "locals.h"
#include "protection.h"
#include "shared.h"
#ifdef EMULATOR_CHECKED
#include "checked/threads.h"
#endif

__thread uint3 threadIdx = {0, 0, 0};
__thread uint3 blockIdx = {0, 0, 0};
__thread dim3 blockDim(1, 1, 1);
__thread dim3 gridDim(1, 1, 1);
__thread bool emulator_in_kernel = false;

namespace emulator {
namespace {

// The block that runs on this CPU thread; null on one that runs host code.
__thread Block* running_block EMULATOR_FAST_TLS = nullptr;

std::string text(const uint3& v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

}  // namespace

void Queue::push(Thread* thread) {
  thread->next = nullptr;
  (last_ ? last_->next : first_) = thread;
  last_ = thread;
}

Thread* Queue::pop() {
  Thread* thread = first_;
  first_ = thread->next;
  if (first_ == nullptr) last_ = nullptr;
  return thread;
}

void Queue::take_all(Queue* other) {
  if (other->empty()) return;
  (last_ ? last_->next : first_) = other->first_;
  last_ = other->last_;
  other->clear();
}

Block::Block() : threads_(kMaxThreads), shared_(allocate_shared()) {}

Block::~Block() { free_shared(shared_); }

Block* Block::mine() {
  static thread_local std::unique_ptr<Block> block(new Block);
  return block.get();
}

Block* Block::running() { return running_block; }

// What is the same for all blocks of a grid.
void Block::start(Grid* grid) {
  grid_ = grid;
  gridDim = grid->config.grid;
  blockDim = grid->config.block;
  count_ = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  int i = 0;
  for (unsigned z = 0; z < blockDim.z; ++z)
    for (unsigned y = 0; y < blockDim.y; ++y)
      for (unsigned x = 0; x < blockDim.x; ++x) threads_[i++].index = {x, y, z};
}

void Block::run(Grid* grid, int64_t begin, int64_t end) {
  start(grid);
  begin_watch();
  DeviceAccess access;
  use_shared(shared_);
  running_block = this;
  emulator_in_kernel = true;
  next_ = begin, end_ = end, together_ = 1;
  grid->block_function != nullptr ? run_loops() : run_fibers();
  running_block = nullptr;
  emulator_in_kernel = false;
}

// Another order of blocks, and of threads, for each EMULATOR_SHUFFLE: the same for the same number.
namespace {

int64_t shuffled(int64_t place, int64_t count, unsigned seed) {
  // place * step + start visits each once if step and count have no divisor in common.
  const int64_t prime = 1000003 + 2 * static_cast<int64_t>(seed);
  int64_t step = prime % count;
  while (count > 1 && std::gcd(step, count) != 1) step = (step + 1) % count;
  return (place * step + seed * 7919) % count;
}

}  // namespace

unsigned shuffle_seed() {
  const char* wanted = std::getenv("EMULATOR_SHUFFLE");
  return wanted == nullptr ? 0 : static_cast<unsigned>(std::strtoul(wanted, nullptr, 10));
}

int64_t Block::block_number() const {
  return blockIdx.x + static_cast<int64_t>(gridDim.x) *
                          (blockIdx.y + static_cast<int64_t>(gridDim.y) * blockIdx.z);
}

inline int Block::thread_at(int place) const {
  if (grid_->shuffle == 0) return place;
  return static_cast<int>(shuffled(place, count_, grid_->shuffle));
}

void Block::go_to(int64_t number) {
  int64_t block = number;
  if (grid_->shuffle != 0)
    block =
        shuffled(number, static_cast<int64_t>(gridDim.x) * gridDim.y * gridDim.z, grid_->shuffle);
  const int64_t rest = block / gridDim.x;
  blockIdx.x = static_cast<unsigned>(block % gridDim.x);
  blockIdx.y = static_cast<unsigned>(rest % gridDim.y);
  blockIdx.z = static_cast<unsigned>(rest / gridDim.y);
  clear_shared();
}

void Block::clear_shared() {
  // NaN, so that reading what was never written shows.
  if (grid_->config.shared != 0) std::memset(emulator_dynamic_shared, 0xff, grid_->config.shared);
  ++emulator_block_number;
}

// The block after this one in the plain order. A division takes longer than a small block, and so
// does a copy as a whole of what was just written number by number.
void Block::go_on(uint3* block) {
  if (++block->x == gridDim.x) {
    block->x = 0;
    if (++block->y == gridDim.y) block->y = 0, ++block->z;
    blockIdx.y = block->y;
    blockIdx.z = block->z;
  }
  blockIdx.x = block->x;
  clear_shared();
}

void Block::run_fibers() {
  for (; next_ < end_ && !grid_->failed; ++next_) {
    go_to(next_);
    EMULATOR_CHECK(block_begins(*grid_, block_number(), shared_, grid_->config.shared));
    bool done = run_block();
    EMULATOR_CHECK(block_ends());
    if (!done) break;
  }
}

// All blocks on one fiber, whose stack has a guard.
void Block::run_loops() {
  fiber_ = row_fibers_.take(&Block::fiber_main);
  if (fiber_ == nullptr) return run_fibers();
  fault_.clear();
  forget_ranges();
  in_loops_ = true;
  switch_context(&base_, &fiber_->context);
  if (!in_loops_) return;
  in_loops_ = false;
  DeviceAccess::renew();  // after a signal handler
  row_fibers_.take_back_all();
  const uintptr_t at = stopped_at_;
  if (at != 0 && !look_closer()) return;
  if (!find_thread()) return;
  if (at != 0) return tell_stopped(at, where_of_block());
  grid_->failed = true;
  set_sticky_error(cudaErrorIllegalAddress, "emulated GPU: " + where_of_block() + ": " + fault_);
}

// Runs the blocks that failed once more, thread by thread; false if that told who it was.
bool Block::find_thread() {
  for (unsigned i = 0; i < together_; ++i) {
    go_to(next_ + i);
    if (!run_block()) return false;
  }
  go_to(next_);
  return true;
}

void Block::leave_loops(const std::string& fault) {
  if (!in_loops_) return;
  fault_ = fault;
  switch_context(&fiber_->context, &base_);
}

// False if the block failed, and left its threads where they were.
bool Block::run_block() {
  started_ = finished_ = waiting_ = waiting_for_block_ = block_votes_ = 0;
  ready_.clear();
  at_barrier_.clear();
  in_loop_.clear();
  turning_ = nullptr;
  undefined_ = 0;
  for (int first = 0; first < count_; first += kWarp) {
    unsigned missing = count_ - first < kWarp ? ~0u << (count_ - first) : 0;
    warps_[first / kWarp] = Warp{0, missing};
  }
  for (int i = 0; i < count_; ++i) threads_[i].finished = false;
  fiber_ = fibers_.take(&Block::fiber_main);
  if (fiber_ == nullptr) return false;
  switch_context(&base_, &fiber_->context);
  if (finished_ == count_) return true;
  DeviceAccess::renew();  // the failing thread may have come here out of a signal handler
  fibers_.take_back_all();
  if (stopped_at_ != 0) tell_stopped(stopped_at_, where());
  return false;
}

void Block::fiber_main() {
  if (running_block->in_loops_) running_block->run_block_functions();
  running_block->run_threads();
  running_block->leave_fiber();
}

// Others may have failed meanwhile, and local variables take room.
void Block::run_block_functions() {
  const BlockFunction function = grid_->block_function;
  const void* const call = grid_->call;
  if (next_ < end_) go_to(next_);
  BlockRun run = {{blockIdx, blockDim, gridDim}, &blockIdx, &next_, &together_, 0};
  int64_t most = 1;
  while (next_ < end_ && !grid_->failed.load(std::memory_order_relaxed)) {
    const int64_t row = gridDim.x - run.index.block.x;
    run.end = next_ + std::min({most, row, end_ - next_});
    function(call, &run);
    // What each block must find anew is given to it here.
    const bool is_alone = release_locals() || grid_->config.shared != 0;
    most = is_alone ? 1 : kBlocksTogether;
    if (next_ < end_) go_on(&run.index.block);
  }
  in_loops_ = false;
  Fiber* left = fiber_;
  row_fibers_.give_back(left);
  switch_context(&left->context, &base_);
}

inline void Block::finish(Thread* thread) {
  const unsigned i = static_cast<unsigned>(number(thread));
  EMULATOR_CHECK(thread_ends(static_cast<int>(i)));
  thread->finished = true;
  warps_[i / kWarp].finished |= 1u << (i % kWarp);
  ++finished_;
  if (waiting_ > 0) wake_others(&warps_[i / kWarp]);
}

// Runs threads that have not started, until one is done while others are ready to go on.
void Block::run_threads() {
  EMULATOR_CHECK(stack_is(fiber_->memory, fiber_->guard + fiber_->size));
  while (started_ < count_ && ready_.empty()) {
    Thread* thread = &threads_[thread_at(started_++)];
    current_ = thread;
    threadIdx = thread->index;
    EMULATOR_CHECK(thread_begins(number(thread)));
    grid_->function(grid_->call);
    finish(current_);
  }
}

// A thread that has returned counts as arrived: perhaps it was the last one missing.
void Block::wake_others(Warp* warp) {
  if (waiting_for_block_ > 0 && waiting_for_block_ + finished_ == count_) release_block();
  const Thread* first = &threads_[(warp - warps_) * kWarp];
  for (int lane = 0; warp->waiting >> lane != 0 && lane < kWarp; ++lane)
    if (warp->waiting >> lane & 1) complete_warp(warp, first[lane].mask, first[lane].wait);
}

// The end of a fiber, since no thread is left to start, or others come first.
void Block::leave_fiber() {
  Fiber* left = fiber_;
  fibers_.give_back(left);
  if (!ready_.empty()) resume(ready_.pop());
  if (finished_ < count_ && (converge() || turn_again())) resume(ready_.pop());
  if (finished_ < count_) deadlock();
  switch_context(&left->context, &base_);
  std::abort();  // nobody resumes a fiber that was given back
}

// Goes on with another thread until this one's wait is over.
void Block::suspend() {
  current_->fiber = fiber_;
  ++waiting_;
  if (!ready_.empty()) return resume(ready_.pop());
  if (started_ == count_) {
    if (!converge() && !turn_again()) deadlock();
    return resume(ready_.pop());  // perhaps this one itself
  }
  Fiber* from = fiber_;
  fiber_ = fibers_.take(&Block::fiber_main);
  if (fiber_ == nullptr) {
    fiber_ = from;
    fail(cudaErrorMemoryAllocation, "no memory for the stack of " + where());
  }
  switch_context(&from->context, &fiber_->context);
}

void Block::resume(Thread* thread) {
  Fiber* from = fiber_;
  --waiting_;
  current_ = thread;
  fiber_ = thread->fiber;
  threadIdx = thread->index;
  EMULATOR_CHECK(stack_is(fiber_->memory, fiber_->guard + fiber_->size));
  EMULATOR_CHECK(thread_goes_on(number(thread)));
  if (fiber_ != from) switch_context(&from->context, &fiber_->context);
}

int Block::wait_for_block(int predicate, const void* place) {
  stop_if_wanted(place);
  EMULATOR_CHECK(barrier_met(number(current_), place));
  block_votes_ += predicate != 0;
  if (waiting_for_block_ + 1 + finished_ == count_) {
    release_block();
  } else {
    ++waiting_for_block_;
    current_->wait = Wait::kBlock;
    at_barrier_.push(current_);
    suspend();
  }
  return block_result_;
}

void Block::release_block() {
  EMULATOR_CHECK(barrier_released(*this));
  waiting_for_block_ = 0;
  block_result_ = block_votes_;
  block_votes_ = 0;
  ready_.take_all(&at_barrier_);
}

void Block::fail(cudaError_t error, const std::string& message) {
  grid_->failed = true;
  // Blocks on other CPU threads may fail too; one report is enough.
  set_sticky_error(error, message);
  switch_context(&fiber_->context, &base_);
  std::abort();
}

std::string Block::where_of_block() const {
  return std::string("kernel ") + grid_->site.name + ", block " + text(blockIdx);
}

std::string Block::where() const { return where_of_block() + ", thread " + text(threadIdx); }

namespace {

const char* name_of(Wait wait) {
  static const char* const names[] = {"__syncthreads()",
                                      "__syncwarp()",
                                      "__ballot_sync(), __any_sync() or __all_sync()",
                                      "__shfl_sync() or its like",
                                      "__match_any_sync(), __reduce_add_sync() or their like",
                                      "__activemask()",
                                      "a loop"};
  return names[static_cast<int>(wait)];
}

}  // namespace

void Block::deadlock() {
  EMULATOR_CHECK(deadlocked(*this));
  int waiting[kWaits] = {};
  for (int i = 0; i < count_; ++i)
    if (!threads_[i].finished) ++waiting[static_cast<int>(threads_[i].wait)];
  std::string message = "emulated GPU: " + where_of_block() + ": no thread can go on. Of " +
                        std::to_string(count_) + " threads";
  for (int i = 0; i < kWaits; ++i)
    if (waiting[i] > 0)
      message +=
          " " + std::to_string(waiting[i]) + " wait at " + name_of(static_cast<Wait>(i)) + ",";
  message += " " + std::to_string(finished_) +
             " have returned.\nhint: every thread of a barrier must reach it; a barrier of a "
             "warp names its threads in the mask";
  fail(cudaErrorLaunchFailure, message);
}

}  // namespace emulator

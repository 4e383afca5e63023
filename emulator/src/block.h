/*!
 * \file block.h
 * \brief One block of a grid, run on one thread of the CPU.
 *
 * The block's threads run one after another. A thread that meets no barrier runs to its end on
 * the stack where the one before it ended, which costs no more than a call. A thread that has to
 * wait keeps its stack, a fiber, and the next thread gets another one. Whoever completes a
 * barrier makes all that wait at it ready; fibers switch to ready threads first, to threads that
 * have not started next. If there are neither, and some still wait, nobody ever will go on: the
 * launch ends with an error. A thread that waits in a loop, for what another one is to write, lets
 * others run after some turns, and goes on when they wait or have ended.
 */
#ifndef EMULATOR_BLOCK_H_
#define EMULATOR_BLOCK_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/launch.h"
#include "fibers.h"
#include "instruction.h"
#include "watchdog.h"

namespace emulator {

const int kMaxThreads = 1024;  // a block
const int kWarp = 32;
/*! \brief Of how many threads a block function's frame holds the variables: a whole row's, and
    those of rows of 32, 16 and 1, which have code of their own. */
const size_t kLongestFrame = kMaxThreads + 32 + 16 + 1;

/*! \brief A grid that is running, seen by all CPU threads that work on it. */
struct Grid {
  LaunchSite site;
  Config config;
  ThreadFunction function;
  BlockFunction block_function;  // or null
  const void* call;
  size_t call_size;
  const void* const* pointers;
  size_t pointers_count;
  unsigned shuffle;  // the seed of the order of blocks and threads; 0 is the plain one
  std::atomic<bool> failed;
  std::atomic<bool> refused;  // by a kernel's bounds
  Code code;                  // of the kernel
};

/*! \brief EMULATOR_SHUFFLE, or 0. */
unsigned shuffle_seed();

/*! \brief What a thread waits for. */
enum class Wait { kBlock, kWarp, kBallot, kShuffle, kGather, kActive, kLoop };
const int kWaits = 7;

/*! \brief A thread of the block. */
struct Thread {
  uint3 index;
  bool finished;
  Fiber* fiber;  // the rest is of use only while it waits
  Thread* next;  // in a queue
  Wait wait;
  unsigned mask;
  int source;
  const void* place;  // of an operation of the warp
  uint64_t value;     // what it gives, then what it gets
  uint64_t* all;      // where the values of all lanes go, or null
};

/*! \brief Threads in the order in which they came. */
class Queue {
 public:
  bool empty() const { return first_ == nullptr; }
  void push(Thread* thread);
  Thread* pop();
  /*! \brief Moves all of another queue's threads to the end of this one. */
  void take_all(Queue* other);
  void clear() { first_ = last_ = nullptr; }

 private:
  Thread *first_ = nullptr, *last_ = nullptr;
};

/*! \brief What the watchdog knows of the block that runs. */
struct Watched {
  double limit = 0, since = 0;  // seconds of processor time
  double told = 0;              // the limit that a message names
  unsigned launch = 0, launch_seen = 0;
  int64_t next_seen = 0;
  int signals = 0;         // since it should stop
  bool is_closer = false;  // it runs once more, thread by thread
};

/*! \brief Runs blocks, one at a time; each CPU thread has one. */
class Block {
 public:
  Block();
  ~Block();

  /*! \brief The one of this CPU thread. */
  static Block* mine();
  /*! \brief The same if a kernel is running on this CPU thread, else null. */
  static Block* running();

  /*! \brief Runs blocks begin .. end - 1 of a grid, until one fails. */
  void run(Grid* grid, int64_t begin, int64_t end);

  // For a running thread.
  /*! \brief A barrier of the block; returns how many threads passed something other than 0. */
  int wait_for_block(int predicate, const void* place);
  /*! \brief An operation with the lanes of the mask; returns what the lane gets. */
  uint64_t wait_for_warp(Wait wait, unsigned mask, uint64_t value, int source, const void* place,
                         uint64_t* all = nullptr);
  int count() const { return count_; }
  bool has_finished(int thread) const { return threads_[thread].finished; }
  /*! \brief Where a thread called the operation of the warp that it waits in. */
  const void* warp_place(int thread) const { return threads_[thread].place; }
  int lane() const { return number(current_) % kWarp; }
  /*! \brief Waits until no other lane can come to `site`, and returns who is there. */
  unsigned wait_for_active(const void* site);
  /*! \brief A turn of a loop that may wait for another thread. */
  void turn(const void* place);

  /*! \brief Ends the launch with a sticky error, from a thread; prints the message. */
  [[noreturn]] void fail(cudaError_t error, const std::string& message);
  /*! \brief Has no more blocks begin, and the launch be refused. */
  void refuse() { grid_->refused = grid_->failed = true; }
  /*! \brief Leaves a block function at a wrong address, so that its threads are run one by one. */
  void leave_loops(const std::string& fault);
  /*! \brief Asks, in a signal, whether the block takes too long or the launch has failed. */
  void be_watched(const Interrupted& interrupted);
  /*! \brief Where a thread calls the runtime: stops it if it is to be stopped. */
  void stop_if_wanted(const void* place) {
    if (stop_wanted_) stop_here(place);
  }
  /*! \brief "kernel k, block (1, 0, 0), thread (2, 0, 0)" */
  std::string where() const;
  std::string where_of_block() const;
  bool is_stack_guard(uintptr_t address) const {
    return fibers_.is_guard(address) || row_fibers_.is_guard(address);
  }

 private:
  struct Warp {
    unsigned waiting, finished;  // a bit a lane
  };

  [[noreturn]] static void fiber_main();
  void start(Grid* grid);
  void go_to(int64_t number);
  void go_on(uint3* block);
  void clear_shared();
  int thread_at(int place) const;
  int64_t block_number() const;
  void run_fibers();
  void run_loops();
  void run_block_functions();
  bool find_thread();
  void begin_watch();
  bool makes_progress();
  void stop_here(const void* place);
  [[noreturn]] void stop(uintptr_t at, uintptr_t caller);
  bool look_closer();
  void tell_stopped(uintptr_t at, const std::string& who);
  bool run_block();
  void run_threads();
  [[noreturn]] void leave_fiber();
  void suspend();
  void resume(Thread* thread);
  void finish(Thread* thread);
  void wake_others(Warp* warp);
  void release_block();
  bool complete_warp(Warp* warp, unsigned mask, Wait wait);
  unsigned members(const Warp* warp, unsigned mask, Wait wait) const;
  bool converge();
  bool turn_again();
  void give_values(Thread* first, unsigned group, Wait wait);
  uint64_t undefined();
  [[noreturn]] void deadlock();
  int number(const Thread* thread) const { return static_cast<int>(thread - threads_.data()); }

  std::vector<Thread> threads_;
  Warp warps_[kMaxThreads / kWarp];
  Fibers fibers_{1};
  Fibers row_fibers_{kLongestFrame};  // for block functions
  char* shared_;                      // for the block's shared variables; never moves
  Context base_;                      // the CPU thread's own stack

  Grid* grid_ = nullptr;
  int64_t next_ = 0, end_ = 0;  // the blocks left to run
  unsigned together_ = 1;       // of them, those that run now
  bool in_loops_ = false;       // in a block function
  std::string fault_;           // what went wrong there
  Watched watched_;
  volatile bool stop_wanted_ = false;
  uintptr_t stopped_at_ = 0;     // an instruction of the kernel
  uintptr_t stopped_below_ = 0;  // where its function returns to, if nothing is on the stack yet
  int count_ = 0, started_ = 0, finished_ = 0;
  int waiting_ = 0, waiting_for_block_ = 0;
  int block_votes_ = 0, block_result_ = 0;
  Thread* current_ = nullptr;
  Fiber* fiber_ = nullptr;
  Queue ready_, at_barrier_, in_loop_;
  Thread* turning_ = nullptr;  // who has had so many turns of loops since it goes on
  int turns_ = 0;
  unsigned undefined_ = 0;  // how many values of the block were undefined so far
};

}  // namespace emulator

#endif  // EMULATOR_BLOCK_H_

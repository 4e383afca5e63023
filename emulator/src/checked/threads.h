/*!
 * \file threads.h
 * \brief Where threads begin and end: for most of them, this is all that is noted.
 */
#ifndef EMULATOR_CHECKED_THREADS_H_
#define EMULATOR_CHECKED_THREADS_H_

#include "state.h"

namespace emulator {
namespace checked {

/*! \brief The thread that ran waits. */
void leave_waiting(State* s);
/*! \brief Finds whether somebody follows a thread's accesses. */
void watch(State* s, int thread);

/*! \brief A thread begins; the one before it has ended, or waits. */
inline void thread_begins(int thread) {
  State* s = state;
  if (s->is_live) leave_waiting(s);
  s->is_live = true;
  s->last_place = nullptr;
  s->running.depth = 0;
  s->watched = false;
  if (s->follows | s->samples | s->counts) watch(s, thread);
  // It has met nobody, and had no fence.
  s->who = uint64_t(s->interval_first) << kThreadBits | static_cast<unsigned>(thread);
}

/*! \brief The running thread is about to leave the kernel, by its last brace or before. */
inline void thread_leaves(const void* place, bool at_end) {
  if (State* s = state) s->ends[s->thread()] = {place, at_end};
}

inline void thread_ends(int thread) {
  State* s = state;
  if (s->pending || !s->plain_reads.empty()) settle_interval(s, thread);
  s->is_live = false;
  if (s->any_wait) s->calls[thread].depth = 0;
}

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_THREADS_H_

/*!
 * \file waits.h
 * \brief Loops that only wait: what a thread read there last is what it waited for.
 *
 * Such a loop reads a word as volatile until another thread has written what it waits for. So that
 * write comes before all that the thread does behind the loop, and a write of the same word there
 * is no race: it is how blocks hand a turn on. Without the loop it would be one, as two blocks may
 * read the same value. In shared memory volatile reads in other places order nothing: they come
 * from code that took the lanes of a warp for in step.
 */
#ifndef EMULATOR_CHECKED_WAITS_H_
#define EMULATOR_CHECKED_WAITS_H_

#include "state.h"

namespace emulator {
namespace checked {

/*! \brief A block begins, whose threads wait for nothing. */
void begin_waits(State* s);
/*! \brief Whether the running thread is in a loop that only waits. */
inline bool is_waiting(const State* s) { return s->any_poll && s->polls[s->thread()].is_on; }
/*! \brief The running thread reads a word there, by an instruction. */
void note_poll(State* s, const Word* word, uint32_t place);
/*! \brief Whether the instruction at a place reads in a loop that only waits. */
bool is_waiting_place(uint32_t place);
/*! \brief Whether the thread, or one that it met since, waited for the last write of a word. */
bool has_waited(const State* s, const Word* word, const Record& last);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_WAITS_H_

/*!
 * \file fences.h
 * \brief What a fence makes visible, and to whom.
 *
 * An access comes before another, of any two threads, if behind it a fence stands, and the other's
 * thread synchronised (by an atomic, a volatile read, or a fence of its own) after that fence. A
 * fence is one for all that its thread had before it, or knew of by a barrier. Nobody looks which
 * word told of it, so no correct program is accused; a program without the fence is.
 *
 * Times are segments: every fence begins a new one for its thread, and they grow in the order in
 * which they begin.
 */
#ifndef EMULATOR_CHECKED_FENCES_H_
#define EMULATOR_CHECKED_FENCES_H_

#include "state.h"

namespace emulator {
namespace checked {

/*! \brief The running thread has a fence. */
void note_fence(State* s);
/*! \brief The running thread did an atomic operation. */
void note_atomic(State* s);
/*! \brief The running thread is about to read what is volatile. */
void note_volatile_read(State* s);
/*! \brief Threads have met: what one of them knows, all do. */
void share_acquired(State* s);
void share_acquired(State* s, int first_thread, unsigned lanes);
/*! \brief A block begins, whose threads know of no fence. */
void begin_fences(State* s);
/*! \brief A launch begins. */
void forget_fences();
/*! \brief Whether any block of this launch used a fence. */
bool has_fences();
/*! \brief Whether fences put an access of this launch before what the thread does now. */
bool is_visible(const State* s, const Record& record);

/*! \brief Sets and asks whether the instruction at a place accesses what is volatile. */
void note_volatile_place(uint32_t place);
bool is_volatile_place(uint32_t place);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_FENCES_H_

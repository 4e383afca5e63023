/*!
 * \file locals.h
 * \brief Memory for the variables that a block function keeps for each thread.
 */
#ifndef EMULATOR_LOCALS_H_
#define EMULATOR_LOCALS_H_

namespace emulator {

/*! \brief Takes back what this CPU thread's last blocks took; whether that was anything. */
bool release_locals();

/*! \brief To be called when a launch begins: allocations may have changed. */
void forget_ranges();

}  // namespace emulator

#endif  // EMULATOR_LOCALS_H_

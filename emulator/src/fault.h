/*!
 * \file fault.h
 * \brief Wrong addresses: who used them, where, and what happens then.
 */
#ifndef EMULATOR_FAULT_H_
#define EMULATOR_FAULT_H_

namespace emulator {

/*! \brief Makes the process's SIGSEGV handler ours; the one before gets what is not ours. */
void install_fault_handler();
/*! \brief The same; false if the program has put another in its place since. */
bool opens_by_need();

/*! \brief Gives the calling thread a stack for signal handlers, once: its own may be full. */
void prepare_fault_stack();

}  // namespace emulator

#endif  // EMULATOR_FAULT_H_

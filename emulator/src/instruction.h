/*!
 * \file instruction.h
 * \brief The address that an instruction accesses, where the CPU does not say it.
 */
#ifndef EMULATOR_INSTRUCTION_H_
#define EMULATOR_INSTRUCTION_H_

#include <signal.h>

#include <cstdint>

namespace emulator {

/*!
 * \brief Whether a signal is about an address that is not aligned, or none at all, so that the
 * signal has no address with it; and that address, from the instruction.
 */
bool find_address(int signal, const siginfo_t& info, const void* context, uintptr_t* address);

/*!
 * \brief Goes on behind a division of integers that the CPU can't do, as a GPU does: by zero, with
 * all bits set, or of the smallest integer by -1, which stays. False if it is none.
 */
bool skip_division(void* context);

/*! \brief Where a signal came: the instruction and the stack; 0 where that is not known. */
struct Interrupted {
  explicit Interrupted(const void* context);
  /*! \brief Where a function returns to that has not put anything on the stack yet, as one that
   * only jumps to another library's. */
  uintptr_t caller() const;
  uintptr_t at = 0, stack = 0;

 private:
  uintptr_t link_ = 0;
};

}  // namespace emulator

#endif  // EMULATOR_INSTRUCTION_H_

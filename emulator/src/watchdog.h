/*!
 * \file watchdog.h
 * \brief Stops kernels that never end.
 *
 * A block that takes too much processor time ends its launch, as a display's watchdog does on a
 * real GPU. What counts is the time that one CPU thread spends in one block: a machine that others
 * use makes no block slower by that clock, and a grid of many blocks may take as long as it likes,
 * since it comes to an end. A timer of each CPU thread that runs blocks asks some times a second,
 * so a block itself is as fast as without.
 */
#ifndef EMULATOR_WATCHDOG_H_
#define EMULATOR_WATCHDOG_H_

#include <cstdint>

namespace emulator {

/*!
 * \brief Seconds of processor time that a block of a kernel may take, 0 for no limit:
 * EMULATOR_LAUNCH_SECONDS, or a tenth of it for kernels that were stopped before in this process,
 * or that EMULATOR_ENDLESS names, with commas.
 */
double seconds_of_block(const char* kernel);
/*! \brief Keeps the name of a kernel that was stopped. */
void note_endless(const char* kernel);

/*! \brief Processor time of the calling thread, in seconds. */
double processor_seconds();

/*! \brief Has the calling thread asked from now on while it runs blocks. Cheap when repeated. */
void watch_this_thread();
/*! \brief Has it asked more often, or as often as before. */
void watch_closely(bool closely);

/*! \brief The machine code of a program or library. */
struct Code {
  uintptr_t begin, end;
  bool has(uintptr_t address) const { return address - begin < end - begin; }
};
/*! \brief That which an address lies in. */
Code code_around(uintptr_t address);

/*! \brief While one exists, its thread is not stopped: it holds a lock. */
class Unstoppable {
 public:
  Unstoppable();
  ~Unstoppable();
};

}  // namespace emulator

#endif  // EMULATOR_WATCHDOG_H_

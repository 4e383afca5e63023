/*!
 * \file protection.h
 * \brief Keeps device memory out of reach of host code.
 *
 * Device memory is tagged with a protection key of the CPU, where it has them: each thread says
 * for itself, in a register, whether it may touch memory with that key. So kernels and copies
 * open it for themselves, in some 20 ns, while host code beside them crashes as it would on a
 * machine with a GPU.
 *
 * Without keys it is closed for all threads at once, by a call of the system for each allocation:
 * a microsecond or more. Kernels and copies open what they are given, and by a fault what else
 * they touch, and leave it open; it is closed again where the host may come to look, behind a
 * copy, an allocation or a wait. Since that costs as much as a small kernel, it is done only while
 * it takes a hundredth of the program's time (the first milliseconds are free): a program that
 * launches without end is not stopped each time.
 *
 * EMULATOR_PROTECT=1 closes it each time, toggle does that even where there are keys, and 0 never
 * closes it. What counts is the variable as the program was started, or loaded the library.
 */
#ifndef EMULATOR_PROTECTION_H_
#define EMULATOR_PROTECTION_H_

#include <cstddef>
#include <cstdint>

namespace emulator {

/*! \brief How device memory is kept closed; sparingly means as described above. */
enum class Protection { kNone, kKeys, kToggle, kSparingly };

Protection protection();

/*! \brief Makes memory usable as device memory; false if the system refuses. */
bool open_device_memory(void* memory, size_t size);
/*! \brief Takes it out of use, for kernels too. */
bool close_device_memory(void* memory, size_t size);

/*! \brief The host goes on, and may touch what it must not. */
void host_goes_on();
/*! \brief Whether memory is opened and closed for all threads. */
bool is_toggled();
/*! \brief For the handler of faults: opens what was touched, if a kernel or a copy runs. False if
 * it would fault again. */
bool open_by_need(uintptr_t address);

/*! \brief While one exists, its thread may touch device memory. They may be nested. */
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  void operator=(const DeviceAccess&) = delete;

  /*! \brief Says what will be touched: opening it now is cheaper than by a fault. */
  void open(const void* ptr);

  /*! \brief Once more, after a signal handler, which starts without, was left by a jump. */
  static void renew();

 private:
  unsigned previous_ = 0;
};

}  // namespace emulator

#endif  // EMULATOR_PROTECTION_H_

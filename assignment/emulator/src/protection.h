/*!
 * \file protection.h
 * \brief Keeps device memory out of reach of host code.
 *
 * Device memory is tagged with a protection key of the CPU, where it has them: each thread says
 * for itself, in a register, whether it may touch memory with that key. So kernels and copies
 * open it for themselves, in some 20 ns, while host code beside them crashes as it would on a
 * machine with a GPU. Without keys device memory stays open, unless EMULATOR_PROTECT=1 asks to
 * have it closed, for all threads at once, whenever no kernel and no copy runs. (toggle asks for
 * that even where there are keys, 0 for no protection at all.)
 */
#ifndef EMULATOR_PROTECTION_H_
#define EMULATOR_PROTECTION_H_

#include <cstddef>

namespace emulator {

/*! \brief How device memory is kept closed. */
enum class Protection { kNone, kKeys, kToggle };

Protection protection();

/*! \brief Makes memory usable as device memory; false if the system refuses. */
bool open_device_memory(void* memory, size_t size);
/*! \brief Takes it out of use, for kernels too. */
bool close_device_memory(void* memory, size_t size);

/*! \brief While one exists, its thread may touch device memory. They may be nested. */
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  void operator=(const DeviceAccess&) = delete;

  /*! \brief Once more, after a signal handler, which starts without, was left by a jump. */
  static void renew();

 private:
  unsigned previous_ = 0;
};

}  // namespace emulator

#endif  // EMULATOR_PROTECTION_H_

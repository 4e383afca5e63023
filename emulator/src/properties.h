/*!
 * \file properties.h
 * \brief What the emulated device is like, beyond the limits of device.h.
 */
#ifndef EMULATOR_PROPERTIES_H_
#define EMULATOR_PROPERTIES_H_

#include "device.h"

namespace emulator {

const int kMultiprocessors = 16, kThreadsPerMultiprocessor = 2048, kBlocksPerMultiprocessor = 32;
const size_t kSharedPerMultiprocessor = 228 * 1024;
const size_t kReservedShared = 1024;  // of each block, for the system
const int kMajor = 9, kMinor = 0;

/*! \brief All that is known about the device. */
void fill_properties(cudaDeviceProp* properties);

/*! \brief An attribute of the device; false if there is none of that number. */
bool find_attribute(int attribute, int* value);

}  // namespace emulator

#endif  // EMULATOR_PROPERTIES_H_

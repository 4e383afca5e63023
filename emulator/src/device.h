/*!
 * \file device.h
 * \brief The limits of the emulated device: those of a large NVIDIA GPU of today.
 */
#ifndef EMULATOR_DEVICE_H_
#define EMULATOR_DEVICE_H_

#include <cstddef>

#include "cuda_runtime_api.h"

namespace emulator {

const unsigned kMaxGridX = 2147483647, kMaxGridYZ = 65535;
const unsigned kMaxBlockXY = 1024, kMaxBlockZ = 64;
const size_t kSharedMemory = 48 * 1024;        // a block, bytes
const size_t kSharedMemoryOptin = 227 * 1024;  // once cudaFuncSetAttribute allows it

/*! \brief Allows launches with that many bytes of dynamic shared memory. */
cudaError_t set_shared_limit(int size);

}  // namespace emulator

#endif  // EMULATOR_DEVICE_H_

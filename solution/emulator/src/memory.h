/*!
 * \file memory.h
 * \brief Memory of the host that the device may use too.
 */
#ifndef EMULATOR_MEMORY_H_
#define EMULATOR_MEMORY_H_

namespace emulator {

/*! \brief Whether an address is in memory of cudaMallocManaged, cudaMallocHost or -HostAlloc. */
bool is_shared_host_memory(const void* ptr);

}  // namespace emulator

#endif  // EMULATOR_MEMORY_H_

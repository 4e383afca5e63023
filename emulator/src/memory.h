/*!
 * \file memory.h
 * \brief Memory of the host that the device may use too.
 */
#ifndef EMULATOR_MEMORY_H_
#define EMULATOR_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace emulator {

/*! \brief Whether an address is in memory of cudaMallocManaged, cudaMallocHost or -HostAlloc, or
 * of a `__device__` variable whose address was asked for. */
bool is_shared_host_memory(const void* ptr);
/*! \brief Finds that memory, as far as the runtime gave it out, where an address is in it or at
 * most so many bytes outside. */
bool find_given_out(uintptr_t address, size_t outside, uintptr_t* begin, size_t* size);
/*! \brief Whether all of `size` bytes are of one allocation of cudaMallocManaged. */
bool is_managed_memory(const void* ptr, size_t size);
/*! \brief Whether all of `size` bytes are of `__managed__` variables. */
bool is_managed_variable(const void* ptr, size_t size);
/*! \brief Forgets what cudaMemAdvise was told of memory that begins there. */
void forget_advice(const void* ptr);
/*! \brief Whether an address is in a `__device__` variable that a call has named. */
bool is_symbol(const void* ptr);
/*! \brief Makes a variable of the program count as such memory, too. */
void add_symbol(const void* symbol, size_t size);

}  // namespace emulator

#endif  // EMULATOR_MEMORY_H_

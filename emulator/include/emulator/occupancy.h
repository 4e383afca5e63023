/*!
 * \file occupancy.h
 * \brief How many blocks of a kernel a multiprocessor takes, and blocks that fill it.
 */
#ifndef EMULATOR_OCCUPANCY_H_
#define EMULATOR_OCCUPANCY_H_

#include "cuda_runtime_api.h"

template <typename... Args>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void (*kernel)(Args...),
                                                          int block_size, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      blocks, reinterpret_cast<const void*>(kernel), block_size, shared);
}
template <typename... Args>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   void (*kernel)(Args...),
                                                                   int block_size, size_t shared,
                                                                   unsigned flags) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, reinterpret_cast<const void*>(kernel), block_size, shared, flags);
}
template <typename... Args>
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* shared, void (*kernel)(Args...),
                                                      int blocks, int block_size) {
  return cudaOccupancyAvailableDynamicSMemPerBlock(shared, reinterpret_cast<const void*>(kernel),
                                                   blocks, block_size);
}

namespace emulator {

/*! \brief Notes a kernel's `__launch_bounds__`, or 0, and the bytes of its shared variables. */
bool note_kernel_at(const void* kernel, int bounds, size_t shared);
template <typename... Args>
bool note_kernel(void (*kernel)(Args...), int bounds, size_t shared) {
  return note_kernel_at(reinterpret_cast<const void*>(kernel), bounds, shared);
}

/*! \brief Tries all sizes of a block; `shared_of` says how much shared memory one of them takes. */
cudaError_t max_potential_block_size(int* grid, int* block, const void* kernel,
                                     size_t (*shared_of)(const void* data, int block_size),
                                     const void* data, int limit);

}  // namespace emulator

/*! \brief The block that fills the device best, and the grid that fills it at all. */
template <typename Function, typename T>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, T kernel,
                                                           Function shared_of, int limit = 0) {
  return emulator::max_potential_block_size(
      grid, block, (const void*)kernel,
      [](const void* function, int block_size) -> size_t {
        return (*static_cast<Function*>(const_cast<void*>(function)))(block_size);
      },
      &shared_of, limit);
}
template <typename Function, typename T>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(int* grid, int* block, T kernel,
                                                                    Function shared_of,
                                                                    int limit = 0, unsigned = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(grid, block, kernel, shared_of, limit);
}
template <typename T>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, T kernel, size_t shared = 0,
                                               int limit = 0) {
  return emulator::max_potential_block_size(
      grid, block, (const void*)kernel,
      [](const void* size, int) -> size_t { return *static_cast<const size_t*>(size); }, &shared,
      limit);
}
template <typename T>
cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, T kernel,
                                                        size_t shared = 0, int limit = 0,
                                                        unsigned = 0) {
  return cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, shared, limit);
}

#endif  // EMULATOR_OCCUPANCY_H_

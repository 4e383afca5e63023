/*!
 * \file pools.h
 * \brief Which pool memory of cudaMallocAsync is counted in.
 */
#ifndef EMULATOR_POOLS_H_
#define EMULATOR_POOLS_H_

#include "cuda_runtime_api.h"

namespace emulator {

/*! \brief The pool that cudaMallocAsync takes from. */
cudaMemPool_t current_pool();
/*! \brief Memory in the order of a stream; a node if the stream captures. */
cudaError_t allocate_in(cudaMemPool_t pool, void** ptr, size_t size, cudaStream_t stream);
/*! \brief Counts it, until it is freed. */
void note_pool_memory(cudaMemPool_t pool, void* ptr, size_t size);
void forget_pool_memory(void* ptr);
/*! \brief The host has waited: pools keep what their thresholds say. */
void pools_release();

}  // namespace emulator

#endif  // EMULATOR_POOLS_H_

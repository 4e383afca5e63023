/*!
 * \file cuda_pipeline.h
 * \brief Copies into shared memory that a GPU makes on the side. Here they are made at once.
 */
#ifndef CUDA_PIPELINE_H_
#define CUDA_PIPELINE_H_

#include "cuda_runtime.h"

/*! \brief Copies 4, 8 or 16 bytes; the last `zeros` of them are 0. */
inline void __pipeline_memcpy_async(void* to, const void* from, size_t size, size_t zeros = 0) {
  assert((size == 4 || size == 8 || size == 16) && zeros <= size);
  std::memcpy(to, from, size - zeros);
  std::memset(static_cast<char*>(to) + size - zeros, 0, zeros);
}

inline void __pipeline_commit() {}

/*! \brief Waits until all but the last `prior` batches of copies are done. */
inline void __pipeline_wait_prior(size_t) {}

#endif  // CUDA_PIPELINE_H_

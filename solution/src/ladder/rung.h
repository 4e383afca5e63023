/*!
 * \file rung.h
 * \brief What the rungs of the ladders of memory share: the call, and sums over a warp.
 *
 * A rung is one file of src/reduction/, src/softmax/ or src/transpose/, built as a library of its
 * own (tools/ladders.py). All of them do as little arithmetic as there is; the fastest ones take as
 * long as copying what they read and write.
 */
#ifndef DLSYS_LADDER_RUNG_H_
#define DLSYS_LADDER_RUNG_H_

#include <cuda_runtime.h>

#include <cstdint>

/*!
 * \brief The one function of a rung. Returns a cudaError_t.
 *
 * \param in rows x columns, row by row.
 * \param out a sum: one float; a softmax: rows x columns; a transpose: columns x rows.
 */
extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream);

namespace ladder {

const int kWarp = 32;

inline unsigned blocks_for(int64_t n, int64_t threads) {
  return static_cast<unsigned>((n + threads - 1) / threads);
}

/*! \brief The element of a thread, where there is a thread for each. */
__device__ inline int64_t element() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/*! \brief The sum over a warp, by five exchanges of registers; lane 0 has it. */
__device__ inline float warp_sum(float value) {
  for (int step = kWarp / 2; step > 0; step /= 2)
    value += __shfl_down_sync(0xffffffff, value, step);
  return value;
}

/*! \brief A sum has 0 to begin with, where blocks add theirs. */
inline int clear(float* out, cudaStream_t stream) {
  return cudaMemsetAsync(out, 0, sizeof(float), stream);
}

}  // namespace ladder

#endif  // DLSYS_LADDER_RUNG_H_

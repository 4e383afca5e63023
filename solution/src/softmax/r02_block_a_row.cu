/*!
 * \file r02_block_a_row.cu
 * \brief Rung 2: one kernel; a block has a row, and adds up in shared memory.
 *
 * Before: three kernels, and reads that went down columns. Now the threads of a block read
 * neighbours, find the largest value by a tree in shared memory, the sum by another, and write the
 * quotients. The row is read three times, but soon after each other: the second and the third time
 * it comes from a cache.
 *
 * in, out: rows x columns. grid: a block of 256 threads a row.
 * cost: 16 bytes an element; two trees of 8 steps with barriers. next: no barriers.
 */
#include "../ladder/rung.h"

namespace {

const int kThreads = 256;

/*! \brief The largest value or the sum of a block, for all its threads. */
template <class Join>
__device__ float of_block(float mine, float* shared, Join join) {
  const int t = threadIdx.x;
  shared[t] = mine;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (t < step) shared[t] = join(shared[t], shared[t + step]);
    __syncthreads();
  }
  const float all = shared[0];
  __syncthreads();  // all have read it
  return all;
}

__global__ void block_kernel(int64_t columns, const float* in, float* out) {
  __shared__ float shared[kThreads];
  const float* x = in + blockIdx.x * columns;
  float largest = -INFINITY, sum = 0;
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) largest = fmaxf(largest, x[j]);
  largest = of_block(largest, shared, [](float a, float b) { return fmaxf(a, b); });
  for (int64_t j = threadIdx.x; j < columns; j += kThreads) sum += expf(x[j] - largest);
  sum = of_block(sum, shared, [](float a, float b) { return a + b; });
  for (int64_t j = threadIdx.x; j < columns; j += kThreads)
    out[blockIdx.x * columns + j] = expf(x[j] - largest) / sum;
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  block_kernel<<<ladder::blocks_for(rows, 1), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      columns, in, out);
  return cudaGetLastError();
}

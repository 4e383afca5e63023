/*!
 * \file r03_sequential.cu
 * \brief Rung 3: the threads that go on are the first ones.
 *
 * Before: they were spread over all warps. Now the first half adds the second half, then the first
 * quarter the second one: lanes of a warp do the same, until 32 are left, and the other warps are
 * done but for the barriers. Neighbours use neighbouring words, so there are no conflicts of banks.
 *
 * in: n floats. out: their sum. grid: a thread an element.
 * cost: 4 n bytes; 8 steps of 4, 2, 1, 1, ... warps. next: half of the threads did nothing but put
 * one element down.
 */
#include "../ladder/rung.h"

namespace {

const int kThreads = 256;

__global__ void sequential_kernel(int64_t n, const float* in, float* out) {
  __shared__ float sums[kThreads];
  const int64_t i = ladder::element();
  const int t = threadIdx.x;
  sums[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (t < step) sums[t] += sums[t + step];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out, sums[0]);
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  const int64_t n = rows * columns;
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  ladder::clear(out, on);
  sequential_kernel<<<ladder::blocks_for(n, kThreads), kThreads, 0, on>>>(n, in, out);
  return cudaGetLastError();
}

/*!
 * \file r02_interleaved.cu
 * \brief Rung 2: a block adds up in shared memory, as a tree.
 *
 * Before: n atomics. Now one a block: each thread puts its element into shared memory, then every
 * second one adds its neighbour, every fourth the next but one, and so on. The threads that go on
 * are spread over all warps. So each warp takes part in nearly every step, with fewer and fewer of
 * its lanes, while the others wait.
 *
 * in: n floats. out: their sum. grid: a thread an element.
 * cost: 4 n bytes; 8 steps of all 8 warps of a block, and as many barriers. next: whole warps that
 * have nothing to do.
 */
#include "../ladder/rung.h"

namespace {

const int kThreads = 256;

__global__ void interleaved_kernel(int64_t n, const float* in, float* out) {
  __shared__ float sums[kThreads];
  const int64_t i = ladder::element();
  const int t = threadIdx.x;
  sums[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int step = 1; step < kThreads; step *= 2) {
    if (t % (2 * step) == 0) sums[t] += sums[t + step];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out, sums[0]);
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  const int64_t n = rows * columns;
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  ladder::clear(out, on);
  interleaved_kernel<<<ladder::blocks_for(n, kThreads), kThreads, 0, on>>>(n, in, out);
  return cudaGetLastError();
}

/*!
 * \file r05_shuffles.cu
 * \brief Rung 5: a warp adds up by shuffles, registers that lanes hand to each other.
 *
 * Before: eight barriers, and each step read two words of shared memory and wrote one. Now the 32
 * lanes of a warp need five shuffles and no barrier. Eight sums of warps go through shared memory,
 * where the first warp adds them up in the same way.
 *
 * in: n floats. out: their sum. grid: a thread for two elements.
 * cost: 4 n bytes; 6 x 8 shuffles and one barrier a block. next: fewer blocks, each with more to
 * add.
 */
#include "../ladder/rung.h"

namespace {

const int kThreads = 256, kWarps = kThreads / ladder::kWarp;

__global__ void shuffles_kernel(int64_t n, const float* in, float* out) {
  __shared__ float of_warp[kWarps];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 2 * kThreads + threadIdx.x;
  const int t = threadIdx.x;
  float sum = (i < n ? in[i] : 0) + (i + kThreads < n ? in[i + kThreads] : 0);
  sum = ladder::warp_sum(sum);
  if (t % ladder::kWarp == 0) of_warp[t / ladder::kWarp] = sum;
  __syncthreads();
  if (t >= ladder::kWarp) return;
  sum = ladder::warp_sum(t < kWarps ? of_warp[t] : 0);
  if (t == 0) atomicAdd(out, sum);
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  const int64_t n = rows * columns;
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  ladder::clear(out, on);
  shuffles_kernel<<<ladder::blocks_for(n, 2 * kThreads), kThreads, 0, on>>>(n, in, out);
  return cudaGetLastError();
}

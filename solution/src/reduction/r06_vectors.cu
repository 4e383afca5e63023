/*!
 * \file r06_vectors.cu
 * \brief Rung 6: four floats at a time, by as many blocks as a GPU holds.
 *
 * Before: a tree for every 512 elements. Now each thread goes through all of the input with the
 * stride of the grid, adds in a register, and the tree comes once at the end: what it costs no
 * longer grows with n. A load of 16 bytes is one instruction, so more bytes are on their way.
 *
 * in: n floats. out: their sum. grid: at most 8 blocks for each of 132 multiprocessors.
 * cost: 4 n bytes, and nothing else that counts.
 */
#include "../ladder/rung.h"

namespace {

const int kThreads = 256, kWarps = kThreads / ladder::kWarp, kMostBlocks = 8 * 132;

__global__ void vectors_kernel(int64_t n, const float* in, float* out) {
  __shared__ float of_warp[kWarps];
  const int64_t threads = static_cast<int64_t>(gridDim.x) * kThreads;
  const int t = threadIdx.x;
  float sum = 0;
  for (int64_t i = ladder::element(); i < n / 4; i += threads) {
    const float4 four = reinterpret_cast<const float4*>(in)[i];
    sum += (four.x + four.y) + (four.z + four.w);
  }
  for (int64_t i = n / 4 * 4 + ladder::element(); i < n; i += threads) sum += in[i];
  sum = ladder::warp_sum(sum);
  if (t % ladder::kWarp == 0) of_warp[t / ladder::kWarp] = sum;
  __syncthreads();
  if (t >= ladder::kWarp) return;
  sum = ladder::warp_sum(t < kWarps ? of_warp[t] : 0);
  if (t == 0) atomicAdd(out, sum);
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  const int64_t n = rows * columns, wanted = ladder::blocks_for(n, 4 * kThreads);
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  ladder::clear(out, on);
  const unsigned blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
  vectors_kernel<<<blocks, kThreads, 0, on>>>(n, in, out);
  return cudaGetLastError();
}

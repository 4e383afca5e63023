/*!
 * \file r07_async.cu
 * \brief Rung 7: asynchronous copies, several slices ahead.
 *
 * Before: a slice came by way of registers, one slice ahead. Now cp.async writes to shared memory
 * on its own: no register is held, and three slices are on their way while one is multiplied, which
 * hides what memory takes. An operand whose lines lie along K is turned on the way, by copies of 4
 * bytes; the other one comes 16 bytes at a time where its lines allow it. Beyond the edges plain
 * stores write zeros: a copy that is told at run time how much of it is zeros compiles to a dozen
 * branches.
 *
 * Where an operand lies along K this rung can be slower than the one before: a thread starts four
 * copies of 4 bytes where it read 16 bytes at once. The next rung has nothing to turn.
 *
 * in: a, b of any size. out: c. grid: 128 x 128 elements a block.
 * cost: as before. next: which threads of a warp read the same words, and operands that lie as they
 * like.
 */
#include <cuda_pipeline.h>

#include "ladder.h"

namespace {

const int kTile = 128, kDepth = 8, kOf = 8, kStages = 4;
const int kSide = kTile / kOf, kThreads = kSide * kSide;

typedef float Slice[kDepth][kTile];

/*! \brief Starts the copies of a slice. */
__device__ inline void copy(Slice& to, const float* from, bool along_k, int first, int at_k,
                            int lines, int depth, bool packs) {
  const int64_t lead = along_k ? depth : lines;
  if (along_k || !packs) {
    for (int at = threadIdx.x; at < kTile * kDepth; at += kThreads) {
      const int line = along_k ? at / kDepth : at % kTile, k = along_k ? at % kDepth : at / kTile;
      const int64_t i = first + line, j = at_k + k;
      const bool is_there = i < lines && j < depth;
      if (is_there)
        __pipeline_memcpy_async(&to[k][line], from + (along_k ? i * lead + j : j * lead + i), 4);
      else
        to[k][line] = 0;
    }
  } else {
    const int line = threadIdx.x % 32 * 4, k = threadIdx.x / 32;
    const bool is_there = first + line < lines && at_k + k < depth;
    float4* const at = reinterpret_cast<float4*>(&to[k][line]);
    if (is_there)
      __pipeline_memcpy_async(at, from + (at_k + k) * lead + first + line, 16);
    else
      *at = make_float4(0, 0, 0, 0);
  }
}

/*! \brief Eight of a row of a slice: two groups of four. */
__device__ inline void take(float (&into)[kOf], const float* row, int at) {
  for (int i = 0; i < kOf; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(row + at * 4 + i / 4 * (kTile / 2));
    into[i] = four.x, into[i + 1] = four.y, into[i + 2] = four.z, into[i + 3] = four.w;
  }
}

template <bool a_along_k, bool b_along_k>
__global__ __launch_bounds__(kThreads) void async_kernel(const float* a, const float* b, float* c,
                                                         int m, int n, int k, bool packs) {
  __shared__ __align__(16) Slice of_a[kStages], of_b[kStages];
  const int row = threadIdx.x / kSide, column = threadIdx.x % kSide;
  const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
  const int slices = (k + kDepth - 1) / kDepth;
  float sum[kOf][kOf] = {};
  for (int slice = 1 - kStages; slice < slices; ++slice) {
    // Three batches are begun, then one for each that is waited for; the last ones are empty.
    const int next = slice + kStages - 1;
    if (slice >= 0) {
      __pipeline_wait_prior(kStages - 2);
      __syncthreads();  // this slice is there, and all have read the one before
    }
    if (next < slices) {
      copy(of_a[next % kStages], a, a_along_k, first_row, next * kDepth, m, k, packs);
      copy(of_b[next % kStages], b, b_along_k, first_column, next * kDepth, n, k, packs);
    }
    __pipeline_commit();
    if (slice < 0) continue;
    for (int d = 0; d < kDepth; ++d) {
      float x[kOf], y[kOf];
      take(x, of_a[slice % kStages][d], row);
      take(y, of_b[slice % kStages][d], column);
      for (int i = 0; i < kOf; ++i)
        for (int j = 0; j < kOf; ++j) sum[i][j] += x[i] * y[j];
    }
  }
  for (int i = 0; i < kOf; ++i)
    for (int j = 0; j < kOf; ++j) {
      const int at = first_row + row * 4 + i / 4 * (kTile / 2) + i % 4;
      const int to = first_column + column * 4 + j / 4 * (kTile / 2) + j % 4;
      if (at < m && to < n) c[static_cast<int64_t>(at) * n + to] = sum[i][j];
    }
}

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  const dim3 grid(ladder::tiles(n, kTile), ladder::tiles(m, kTile));
  const bool packs = (transposes_a ? m : k) % 4 == 0 && (transposes_b ? k : n) % 4 == 0;
  const float *x = static_cast<const float*>(a), *y = static_cast<const float*>(b);
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  if (transposes_a && transposes_b)
    async_kernel<false, true><<<grid, kThreads, 0, on>>>(x, y, c, m, n, k, packs);
  else if (transposes_a)
    async_kernel<false, false><<<grid, kThreads, 0, on>>>(x, y, c, m, n, k, packs);
  else if (transposes_b)
    async_kernel<true, true><<<grid, kThreads, 0, on>>>(x, y, c, m, n, k, packs);
  else
    async_kernel<true, false><<<grid, kThreads, 0, on>>>(x, y, c, m, n, k, packs);
  return cudaGetLastError();
}

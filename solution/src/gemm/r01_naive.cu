/*!
 * \file r01_naive.cu
 * \brief Rung 1: a thread computes one element of c from memory. What all others are beside.
 *
 * Neighbouring threads have neighbouring rows, as the formula c[i][j] = sum over k of a[i][k]
 * b[k][j] suggests. So a warp's 32 reads of a go to 32 lines of memory, and of each 32 bytes that a
 * multiprocessor gets, 4 are used.
 *
 * in: a, b of any size. out: c. grid: 16 x 16 elements a block.
 * cost: 2 m n k operations; each of them reads 4 bytes. next: neighbouring columns.
 */
#include "ladder.h"

namespace {

const int kTile = 16;

__global__ void naive_kernel(ladder::Matrix a, ladder::Matrix b, float* c) {
  const int i = blockIdx.x * kTile + threadIdx.x, j = blockIdx.y * kTile + threadIdx.y;
  if (i >= a.rows || j >= b.columns) return;
  float sum = 0;
  for (int k = 0; k < a.columns; ++k) sum += a.of(i, k) * b.of(k, j);
  c[static_cast<int64_t>(i) * b.columns + j] = sum;
}

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  const dim3 grid(ladder::tiles(m, kTile), ladder::tiles(n, kTile)), block(kTile, kTile);
  naive_kernel<<<grid, block, 0, static_cast<cudaStream_t>(stream)>>>(
      ladder::matrix(a, m, k, transposes_a), ladder::matrix(b, k, n, transposes_b), c);
  return cudaGetLastError();
}

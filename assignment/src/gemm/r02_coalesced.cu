/*!
 * \file r02_coalesced.cu
 * \brief Rung 2: neighbouring threads have neighbouring columns.
 *
 * Before: a warp read 32 rows of a at once, each from another line of memory. Now a warp has one
 * row of c and 32 columns: it reads one element of a, which all its threads get, and 32 neighbours
 * of b, which are one access of 128 bytes. Nothing else changes.
 *
 * in: a, b of any size. out: c. grid: 8 rows of 32 columns a block.
 * cost: as before; a warp reads 132 bytes for 64 operations. next: read each element once a block.
 */
#include "ladder.h"

namespace {

const int kRows = 8, kColumns = 32;

__global__ void coalesced_kernel(ladder::Matrix a, ladder::Matrix b, float* c) {
  const int i = blockIdx.y * kRows + threadIdx.y, j = blockIdx.x * kColumns + threadIdx.x;
  if (i >= a.rows || j >= b.columns) return;
  float sum = 0;
  for (int k = 0; k < a.columns; ++k) sum += a.of(i, k) * b.of(k, j);
  c[static_cast<int64_t>(i) * b.columns + j] = sum;
}

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  const dim3 grid(ladder::tiles(n, kColumns), ladder::tiles(m, kRows)), block(kColumns, kRows);
  coalesced_kernel<<<grid, block, 0, static_cast<cudaStream_t>(stream)>>>(
      ladder::matrix(a, m, k, transposes_a), ladder::matrix(b, k, n, transposes_b), c);
  return cudaGetLastError();
}

/*!
 * \file r04_register_1d.cu
 * \brief Rung 4: a thread computes eight elements of a column, in registers.
 *
 * Before: two reads of shared memory for each multiplication. Now a thread reads an element of b
 * once for its eight rows: nine reads for eight multiplications. The tile of c is 64 x 64, so
 * memory is read half as often too; a slice of K is 8 deep, so that 512 threads copy one element
 * each.
 *
 * in: a, b of any size. out: c. grid: 64 x 64 elements a block.
 * cost: 2 m n k operations; 8 m n k / 64 bytes from memory. next: reuse along both sides.
 */
#include "ladder.h"

namespace {

const int kTile = 64, kDepth = 8, kOf = 8;  // of c; of K; rows of a thread
const int kThreads = kTile * kTile / kOf;

__global__ __launch_bounds__(kThreads) void register_1d_kernel(ladder::Matrix a, ladder::Matrix b,
                                                               float* c) {
  __shared__ float of_a[kTile][kDepth], of_b[kDepth][kTile];
  const int thread = threadIdx.x, column = thread % kTile, row = thread / kTile * kOf;
  const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
  float sum[kOf] = {};
  for (int first = 0; first < a.columns; first += kDepth) {
    of_a[thread / kDepth][thread % kDepth] =
        a.at(first_row + thread / kDepth, first + thread % kDepth);
    of_b[thread / kTile][column] = b.at(first + thread / kTile, first_column + column);
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
      const float y = of_b[k][column];
      for (int i = 0; i < kOf; ++i) sum[i] += of_a[row + i][k] * y;
    }
    __syncthreads();
  }
  const int j = first_column + column;
  for (int i = 0; i < kOf; ++i) {
    const int at = first_row + row + i;
    if (at < a.rows && j < b.columns) c[static_cast<int64_t>(at) * b.columns + j] = sum[i];
  }
}

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  const dim3 grid(ladder::tiles(n, kTile), ladder::tiles(m, kTile));
  register_1d_kernel<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      ladder::matrix(a, m, k, transposes_a), ladder::matrix(b, k, n, transposes_b), c);
  return cudaGetLastError();
}

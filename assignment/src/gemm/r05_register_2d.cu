/*!
 * \file r05_register_2d.cu
 * \brief Rung 5: a thread computes 8 x 8 elements.
 *
 * Before: nine reads of shared memory for eight multiplications. Now 16 reads for 64: for each k a
 * thread takes eight elements of a and eight of b into registers, and multiplies all pairs. Its
 * rows and columns lie 16 apart, so that neighbouring threads read neighbouring words. The tile of
 * c is 128 x 128, and a is kept k by k, as it is read.
 *
 * in: a, b of any size. out: c. grid: 128 x 128 elements a block.
 * cost: 2 m n k operations; 8 m n k / 128 bytes from memory. next: four words at a time, and copies
 * that do not wait.
 */
#include "ladder.h"

namespace {

const int kTile = 128, kDepth = 8, kOf = 8;  // of c; of K; rows and columns of a thread
const int kSide = kTile / kOf, kThreads = kSide * kSide;

__global__ __launch_bounds__(kThreads) void register_2d_kernel(ladder::Matrix a, ladder::Matrix b,
                                                               float* c) {
  __shared__ float of_a[kDepth][kTile + 1], of_b[kDepth][kTile];  // + 1: for other banks
  const int thread = threadIdx.x, row = thread / kSide, column = thread % kSide;
  const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
  float sum[kOf][kOf] = {};
  for (int first = 0; first < a.columns; first += kDepth) {
    for (int at = thread; at < kTile * kDepth; at += kThreads) {
      of_a[at % kDepth][at / kDepth] = a.at(first_row + at / kDepth, first + at % kDepth);
      of_b[at / kTile][at % kTile] = b.at(first + at / kTile, first_column + at % kTile);
    }
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
      float x[kOf], y[kOf];
      for (int i = 0; i < kOf; ++i) x[i] = of_a[k][row + i * kSide];
      for (int j = 0; j < kOf; ++j) y[j] = of_b[k][column + j * kSide];
      for (int i = 0; i < kOf; ++i)
        for (int j = 0; j < kOf; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < kOf; ++i)
    for (int j = 0; j < kOf; ++j) {
      const int m = first_row + row + i * kSide, n = first_column + column + j * kSide;
      if (m < a.rows && n < b.columns) c[static_cast<int64_t>(m) * b.columns + n] = sum[i][j];
    }
}

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  const dim3 grid(ladder::tiles(n, kTile), ladder::tiles(m, kTile));
  register_2d_kernel<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      ladder::matrix(a, m, k, transposes_a), ladder::matrix(b, k, n, transposes_b), c);
  return cudaGetLastError();
}

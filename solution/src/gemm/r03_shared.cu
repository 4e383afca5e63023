/*!
 * \file r03_shared.cu
 * \brief Rung 3: a block reads tiles of a and b once, into shared memory.
 *
 * Before: each element of a was read by n threads from the caches or from memory, each of b by m.
 * Now the threads of a block copy a tile of both, and read it 32 times from shared memory. Beyond
 * the edges a tile holds zeros, so the products need no test.
 *
 * in: a, b of any size. out: c. grid: 32 x 32 elements a block.
 * cost: 2 m n k operations; 8 m n k / 32 bytes from memory, 8 bytes from shared memory for each two
 * operations, which is the limit now. next: more than one element a thread.
 */
#include "ladder.h"

namespace {

const int kTile = 32;

__global__ __launch_bounds__(kTile* kTile) void shared_kernel(ladder::Matrix a, ladder::Matrix b,
                                                              float* c) {
  __shared__ float of_a[kTile][kTile], of_b[kTile][kTile];
  const int row = threadIdx.y, column = threadIdx.x;
  const int i = blockIdx.y * kTile + row, j = blockIdx.x * kTile + column;
  float sum = 0;
  for (int first = 0; first < a.columns; first += kTile) {
    of_a[row][column] = a.at(i, first + column);
    of_b[row][column] = b.at(first + row, j);
    __syncthreads();  // the tiles are complete
    for (int k = 0; k < kTile; ++k) sum += of_a[row][k] * of_b[k][column];
    __syncthreads();  // all have read them
  }
  if (i < a.rows && j < b.columns) c[static_cast<int64_t>(i) * b.columns + j] = sum;
}

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  const dim3 grid(ladder::tiles(n, kTile), ladder::tiles(m, kTile)), block(kTile, kTile);
  shared_kernel<<<grid, block, 0, static_cast<cudaStream_t>(stream)>>>(
      ladder::matrix(a, m, k, transposes_a), ladder::matrix(b, k, n, transposes_b), c);
  return cudaGetLastError();
}

/*!
 * \file r06_swizzle.cu
 * \brief Rung 6: words of a row change places, and nothing is padded.
 *
 * Before: a word more in each row. Now the word of column x lies at x xor y in row y: a row is
 * still 32 words in 32 banks, and so is a column, since y is another one in each row. Where tiles
 * are powers of two, as tensor cores and bulk copies want them, this is the only way.
 *
 * in: rows x columns. out: columns x rows. grid: 32 x 8 threads for a tile of 32 x 32.
 * cost: as before.
 */
#include "../ladder/rung.h"

namespace {

const int kTile = 32, kRows = 8;

__global__ void swizzle_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  __shared__ float tile[kTile][kTile];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile;
  const int x = threadIdx.x;
#pragma unroll
  for (int y = threadIdx.y; y < kTile; y += kRows)
    if (row + y < rows && column + x < columns)
      tile[y][x ^ y] = in[(row + y) * columns + column + x];
  __syncthreads();
#pragma unroll
  for (int y = threadIdx.y; y < kTile; y += kRows)
    if (column + y < columns && row + x < rows) out[(column + y) * rows + row + x] = tile[x][y ^ x];
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  const dim3 grid(ladder::blocks_for(columns, kTile), ladder::blocks_for(rows, kTile));
  swizzle_kernel<<<grid, dim3(kTile, kRows), 0, static_cast<cudaStream_t>(stream)>>>(rows, columns,
                                                                                     in, out);
  return cudaGetLastError();
}

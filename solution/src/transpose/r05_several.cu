/*!
 * \file r05_several.cu
 * \brief Rung 5: a thread moves four elements.
 *
 * Before: 1,024 threads for a tile, each with one load to wait for; two such blocks fill a
 * multiprocessor, and both may wait at their barriers. Now 256 threads take four rows each: four
 * loads are on their way at once, and eight blocks are there to go on.
 *
 * in: rows x columns. out: columns x rows. grid: 32 x 8 threads for a tile of 32 x 32.
 * cost: as before; a quarter of the barriers. next: no padding.
 */
#include "../ladder/rung.h"

namespace {

const int kTile = 32, kRows = 8;

__global__ void several_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile;
  const int x = threadIdx.x;
#pragma unroll
  for (int y = threadIdx.y; y < kTile; y += kRows)
    if (row + y < rows && column + x < columns) tile[y][x] = in[(row + y) * columns + column + x];
  __syncthreads();
#pragma unroll
  for (int y = threadIdx.y; y < kTile; y += kRows)
    if (column + y < columns && row + x < rows) out[(column + y) * rows + row + x] = tile[x][y];
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  const dim3 grid(ladder::blocks_for(columns, kTile), ladder::blocks_for(rows, kTile));
  several_kernel<<<grid, dim3(kTile, kRows), 0, static_cast<cudaStream_t>(stream)>>>(rows, columns,
                                                                                     in, out);
  return cudaGetLastError();
}

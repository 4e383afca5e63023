/*!
 * \file r03_shared.cu
 * \brief Rung 3: a block turns a tile in shared memory.
 *
 * Before: one side went down a column of global memory. Now a block reads its tile along lines, and
 * writes it along lines of the result. The column is in shared memory. A row of the tile has 32
 * words, so all words of a column lie in one bank: 32 turns for each read of a warp.
 *
 * in: rows x columns. out: columns x rows. grid: a thread an element, 32 x 32 a block.
 * cost: 8 bytes an element; 33 turns of the banks a warp. next: a column in 32 banks.
 */
#include "../ladder/rung.h"

namespace {

const int kTile = 32;

__global__ void shared_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  __shared__ float tile[kTile][kTile];
  const int64_t row = static_cast<int64_t>(blockIdx.y) * kTile;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile;
  const int x = threadIdx.x, y = threadIdx.y;
  if (row + y < rows && column + x < columns) tile[y][x] = in[(row + y) * columns + column + x];
  __syncthreads();
  if (column + y < columns && row + x < rows) out[(column + y) * rows + row + x] = tile[x][y];
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  const dim3 grid(ladder::blocks_for(columns, kTile), ladder::blocks_for(rows, kTile));
  shared_kernel<<<grid, dim3(kTile, kTile), 0, static_cast<cudaStream_t>(stream)>>>(rows, columns,
                                                                                    in, out);
  return cudaGetLastError();
}

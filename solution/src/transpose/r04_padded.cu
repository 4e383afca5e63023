/*!
 * \file r04_padded.cu
 * \brief Rung 4: a row of the tile is one word longer.
 *
 * Before: a column lay in one bank. With 33 words in a row each word of a column lies one bank
 * further on, and a warp reads it in one turn. It costs 128 bytes.
 *
 * in: rows x columns. out: columns x rows. grid: a thread an element, 32 x 32 a block.
 * cost: 8 bytes an element; 2 turns of the banks a warp. next: fewer threads with more to do.
 */
#include "../ladder/rung.h"

namespace {

const int kTile = 32;

__global__ void padded_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  __shared__ float tile[kTile][kTile + 1];
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
  padded_kernel<<<grid, dim3(kTile, kTile), 0, static_cast<cudaStream_t>(stream)>>>(rows, columns,
                                                                                    in, out);
  return cudaGetLastError();
}

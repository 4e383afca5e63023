/*!
 * \file r01_naive.cu
 * \brief Rung 1: neighbouring threads read neighbours, and write down a column.
 *
 * A warp's 32 reads are one line of memory. Its 32 writes go to 32 lines: of each 32 bytes that are
 * moved, 4 are wanted.
 *
 * in: rows x columns. out: columns x rows. grid: a thread an element, 32 x 32 a block.
 * cost: 8 bytes an element; writes move eight times as much. next: the other way round.
 */
#include "../ladder/rung.h"

namespace {

const int kTile = 32;

__global__ void naive_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t j = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  if (i < rows && j < columns) out[j * rows + i] = in[i * columns + j];
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  const dim3 grid(ladder::blocks_for(columns, kTile), ladder::blocks_for(rows, kTile));
  naive_kernel<<<grid, dim3(kTile, kTile), 0, static_cast<cudaStream_t>(stream)>>>(rows, columns,
                                                                                   in, out);
  return cudaGetLastError();
}

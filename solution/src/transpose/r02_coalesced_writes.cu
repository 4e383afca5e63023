/*!
 * \file r02_coalesced_writes.cu
 * \brief Rung 2: neighbouring threads write neighbours, and read down a column.
 *
 * Before: writes were scattered. Now reads are. As many sectors move; but what a read brings too
 * much waits in the cache for the warps beside, and a write leaves nothing to wait for.
 *
 * in: rows x columns. out: columns x rows. grid: a thread an element, 32 x 32 a block.
 * cost: 8 bytes an element; reads move eight times as much, part of it from the cache. next: both
 * along lines.
 */
#include "../ladder/rung.h"

namespace {

const int kTile = 32;

__global__ void coalesced_writes_kernel(int64_t rows, int64_t columns, const float* in,
                                        float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.x;
  const int64_t j = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.y;
  if (i < rows && j < columns) out[j * rows + i] = in[i * columns + j];
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  const dim3 grid(ladder::blocks_for(columns, kTile), ladder::blocks_for(rows, kTile));
  coalesced_writes_kernel<<<grid, dim3(kTile, kTile), 0, static_cast<cudaStream_t>(stream)>>>(
      rows, columns, in, out);
  return cudaGetLastError();
}

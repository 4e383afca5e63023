/*!
 * \file r03_warp_a_row.cu
 * \brief Rung 3: a warp has a row, and its lanes exchange registers.
 *
 * Before: 19 barriers a row. Now five shuffles for the largest value and five for the sum, and
 * nobody waits for another warp. A lane has more columns to go through, so the exchange weighs
 * less.
 *
 * in, out: rows x columns. grid: 8 warps a block, a warp a row.
 * cost: 16 bytes an element, read three times. next: two of the three reads.
 */
#include "../ladder/rung.h"

namespace {

const int kRows = 8;

__global__ void warp_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.y;
  if (i >= rows) return;  // the whole warp leaves
  const float* x = in + i * columns;
  float largest = -INFINITY, sum = 0;
  for (int64_t j = threadIdx.x; j < columns; j += ladder::kWarp) largest = fmaxf(largest, x[j]);
  for (int step = ladder::kWarp / 2; step > 0; step /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
  for (int64_t j = threadIdx.x; j < columns; j += ladder::kWarp) sum += expf(x[j] - largest);
  for (int step = ladder::kWarp / 2; step > 0; step /= 2)
    sum += __shfl_xor_sync(0xffffffff, sum, step);
  for (int64_t j = threadIdx.x; j < columns; j += ladder::kWarp)
    out[i * columns + j] = expf(x[j] - largest) / sum;
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  warp_kernel<<<ladder::blocks_for(rows, kRows), dim3(ladder::kWarp, kRows), 0,
                static_cast<cudaStream_t>(stream)>>>(rows, columns, in, out);
  return cudaGetLastError();
}

/*!
 * \file r04_online.cu
 * \brief Rung 4: the largest value and the sum in one pass.
 *
 * Before: the sum was begun when the largest value was known. But exp(x - m) for another m differs
 * by a factor alone: a lane keeps the sum for the largest value so far, and multiplies it by
 * exp(old - new) when a larger one comes. Parts of a row are joined in the same way.
 *
 * in, out: rows x columns. grid: 8 warps a block, a warp a row.
 * cost: 12 bytes an element, read twice. next: a row that fits is kept.
 */
#include "running.cuh"

namespace {

const int kRows = 8;

__global__ void online_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.y;
  if (i >= rows) return;  // the whole warp leaves
  const float* x = in + i * columns;
  ladder::Running mine = {-INFINITY, 0};
  for (int64_t j = threadIdx.x; j < columns; j += ladder::kWarp) mine.take(x[j]);
  const ladder::Running all = ladder::running_of_warp(mine);
  for (int64_t j = threadIdx.x; j < columns; j += ladder::kWarp)
    out[i * columns + j] = expf(x[j] - all.largest) / all.sum;
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  online_kernel<<<ladder::blocks_for(rows, kRows), dim3(ladder::kWarp, kRows), 0,
                  static_cast<cudaStream_t>(stream)>>>(rows, columns, in, out);
  return cudaGetLastError();
}

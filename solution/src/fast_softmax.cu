/*!
 * \file fast_softmax.cu
 * \brief Task 3.7: softmax of every row, which is read from memory once.
 */
#include "./c_runtime_api.h"
#include "./cuda_check.h"

// BEGIN SOLUTION 3.7
// out[i, j] = exp(in[i, j] - max_i) / sum over j of exp(in[i, j] - max_i)
// in, out: rows x columns. grid: 1-D, 8 warps a block, a warp for each row.
// cost: 8 bytes an element, as long as a row fits into a warp's registers: 1024 floats. Longer rows
// are read twice: the largest value and the sum are found together, by correcting the sum whenever
// a larger value comes.
// next: a block for a row, so that longer rows fit; four floats at a time.
static const int kWarp = 32, kRowsPerBlock = 8, kKept = 32;

// The largest value so far, and the sum of exp(value - largest).
struct Running {
  float largest, sum;
};

// Both of two stretches of a row. One that holds nothing yet has -inf and 0.
__device__ static Running joined(Running a, Running b) {
  const float largest = max(a.largest, b.largest);
  if (largest == -INFINITY) return {largest, 0};
  return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

__device__ static Running joined_of_warp(Running mine) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Running other = {__shfl_xor_sync(0xffffffff, mine.largest, step),
                           __shfl_xor_sync(0xffffffff, mine.sum, step)};
    mine = joined(mine, other);
  }
  return mine;
}

// A row that fits: its values stay in registers.
__device__ static void softmax_kept(int columns, const float* x, float* y) {
  float kept[kKept];
  Running mine = {-INFINITY, 0};
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    const int j = i * kWarp + threadIdx.x;
    kept[i] = j < columns ? x[j] : -INFINITY;
    mine.largest = max(mine.largest, kept[i]);
  }
#pragma unroll
  for (int i = 0; i < kKept; ++i)
    if (i * kWarp + threadIdx.x < columns) mine.sum += expf(kept[i] - mine.largest);
  const Running all = joined_of_warp(mine);
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    const int j = i * kWarp + threadIdx.x;
    if (j < columns) y[j] = expf(kept[i] - all.largest) / all.sum;
  }
}

__global__ void fast_softmax_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.y;
  if (i >= rows) return;  // the whole warp leaves: nobody waits for it
  const float* x = in + i * columns;
  float* y = out + i * columns;
  if (columns <= kWarp * kKept) return softmax_kept(static_cast<int>(columns), x, y);
  Running mine = {-INFINITY, 0};
  for (int64_t j = threadIdx.x; j < columns; j += kWarp) mine = joined(mine, {x[j], 1});
  const Running all = joined_of_warp(mine);
  for (int64_t j = threadIdx.x; j < columns; j += kWarp) y[j] = expf(x[j] - all.largest) / all.sum;
}

// END SOLUTION
int DLGpuFastSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "fast_softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  // BEGIN SOLUTION 3.7
  const int64_t rows = input->shape[0], columns = input->shape[1];
  if (rows * columns == 0) return 0;
  fast_softmax_kernel<<<blocks_for(rows, kRowsPerBlock), dim3(kWarp, kRowsPerBlock)>>>(
      rows, columns, data_of(input), data_of(output));
  return launched("fast_softmax");
  // END SOLUTION
}

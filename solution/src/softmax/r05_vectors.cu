/*!
 * \file r05_vectors.cu
 * \brief Rung 5: four floats at a time, and a row that fits stays in registers.
 *
 * Before: a row was read twice, word by word. Now a lane loads all of its part, eight vectors of
 * four for a row of 1,024, before it looks at the first one: so much is on its way at once. They
 * stay in registers until they are written. Longer rows, and those that do not lie in vectors, go
 * as before.
 *
 * in, out: rows x columns. grid: 8 warps a block, a warp a row.
 * cost: 8 bytes an element, as a copy.
 */
#include "running.cuh"

namespace {

const int kRows = 8, kVectors = 8;  // of a lane

__device__ inline float exponential(float x, const ladder::Running& all) {
  return expf(x - all.largest) / all.sum;
}

/*! \brief A row of at most 32 x 8 vectors. */
__device__ inline void kept_row(int vectors, const float4* x, float4* y) {
  float4 kept[kVectors];
  ladder::Running mine = {-INFINITY, 0};
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int j = i * ladder::kWarp + threadIdx.x;
    if (j < vectors) kept[i] = x[j];
  }
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    if (i * ladder::kWarp + threadIdx.x >= vectors) continue;
    const float4 four = kept[i];
    const float most = fmaxf(fmaxf(four.x, four.y), fmaxf(four.z, four.w));
    mine.join({most, expf(four.x - most) + expf(four.y - most) + expf(four.z - most) +
                         expf(four.w - most)});
  }
  const ladder::Running all = ladder::running_of_warp(mine);
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int j = i * ladder::kWarp + threadIdx.x;
    if (j < vectors)
      y[j] = make_float4(exponential(kept[i].x, all), exponential(kept[i].y, all),
                         exponential(kept[i].z, all), exponential(kept[i].w, all));
  }
}

__global__ void vectors_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.y;
  if (i >= rows) return;  // the whole warp leaves
  const float* x = in + i * columns;
  float* y = out + i * columns;
  if (columns % 4 == 0 && columns <= 4 * kVectors * ladder::kWarp)
    return kept_row(static_cast<int>(columns / 4), reinterpret_cast<const float4*>(x),
                    reinterpret_cast<float4*>(y));
  ladder::Running mine = {-INFINITY, 0};
  for (int64_t j = threadIdx.x; j < columns; j += ladder::kWarp) mine.take(x[j]);
  const ladder::Running all = ladder::running_of_warp(mine);
  for (int64_t j = threadIdx.x; j < columns; j += ladder::kWarp) y[j] = exponential(x[j], all);
}

}  // namespace

extern "C" int rung(const float* in, float* out, int64_t rows, int64_t columns, void* stream) {
  vectors_kernel<<<ladder::blocks_for(rows, kRows), dim3(ladder::kWarp, kRows), 0,
                   static_cast<cudaStream_t>(stream)>>>(rows, columns, in, out);
  return cudaGetLastError();
}

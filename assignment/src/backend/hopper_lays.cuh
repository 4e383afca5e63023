/*!
 * \file hopper_lays.cuh
 * \brief How operands of Hopper's convolutions come to lie as wgmma wants them, and parts of
 * results as they belong.
 */
#ifndef DLSYS_BACKEND_HOPPER_LAYS_CUH_
#define DLSYS_BACKEND_HOPPER_LAYS_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "numbers.h"

namespace dlsys {
namespace backend {
namespace hopper {

/*! \brief The sum of parts. */
template <class Element>
__global__ void add_parts_kernel(Element* out, const float* parts, int many, int64_t size) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= size) return;
  float sum = 0;
#pragma unroll 8
  for (int part = 0; part < many; ++part) sum += parts[part * size + i];
  out[i] = Element(sum);
}

/*! \brief Writes a number as TF32; if there is a `low`, also what is lost, so far behind. What
 * would be rounded to infinity is cut. (Infinity itself has no low: its products are NaN.) */
__device__ inline void lay(float* to, int64_t low, float value) {
  if (low == 0) {  // the copy engine rounds
    *to = value;
    return;
  }
  unsigned high;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(value));
  if ((high & 0x7fffffff) == 0x7f800000) high = __float_as_uint(value) & 0xffffe000;
  to[0] = __uint_as_float(high);
  to[low] = value - __uint_as_float(high);
}

/*! \brief The same as bfloat16, which has no low. */
__device__ inline void lay(BFloat16* to, int64_t, float value) { *to = BFloat16(value); }

const int kAcross = 32;  // channels of a line that a block of the next two kernels does

/*! \brief The sum of parts, each (lines, taps, channels), as (lines, channels, taps). grid:
 * channels, lines. shared: a float for each channel and tap. */
static __global__ void join_kernel(float* out, const float* parts, int many, int64_t size,
                                   int channels, int taps) {
  extern __shared__ float sums[];
  const int first = blockIdx.x * kAcross, line = blockIdx.y;
  const int count = min(kAcross, channels - first) * taps;
  for (int i = threadIdx.x; i < kAcross * taps; i += blockDim.x) {
    const int tap = i / kAcross, channel = first + i % kAcross;
    if (channel >= channels) continue;
    const float* const from = parts + (line * taps + tap) * channels + channel;
    float sum = 0;
#pragma unroll 8
    for (int part = 0; part < many; ++part) sum += from[part * size];
    sums[i % kAcross * taps + tap] = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    out[(line * channels + first) * taps + i] = sums[i];
}

/*! \brief The other way: from (lines, channels, taps) to (taps, lines, channels), whose lines are
 * `lead` apart. */
template <class Element>
__global__ void split_kernel(const float* from, Element* to, int channels, int taps, int lead,
                             int64_t low) {
  extern __shared__ float all[];
  const int first = blockIdx.x * kAcross, line = blockIdx.y;
  const int count = min(kAcross, channels - first) * taps;
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    all[i] = from[(line * channels + first) * taps + i];
  __syncthreads();
  for (int i = threadIdx.x; i < kAcross * taps; i += blockDim.x) {
    const int tap = i / kAcross, channel = first + i % kAcross;
    if (channel < channels)
      lay(to + (tap * gridDim.y + line) * lead + channel, low, all[i % kAcross * taps + tap]);
  }
}

/*! \brief A matrix, or a batch of them, and how it is laid the other way: element (d, l) from
 * d * from_depth + l comes to l / split * outer + l % split * inner + d / 32 * apart + d % 32. */
struct Turn {
  int lines, depth, batch, from_depth, from_batch, split, outer, inner, apart, to_batch;
  bool fills;   // the last 32 up, with zeros
  int64_t low;  // how far behind lows lie, or 0
};

/*! \brief Lays it, through a tile in shared memory. */
template <class Element>
__global__ void turn_kernel(const float* from, Element* to, const Turn all) {
  __shared__ float tile[32][33];
  const int line = blockIdx.x * 32, depth = blockIdx.y * 32, x = threadIdx.x;
  from += static_cast<int64_t>(blockIdx.z) * all.from_batch;
  to += static_cast<int64_t>(blockIdx.z) * all.to_batch +
        static_cast<int64_t>(blockIdx.y) * all.apart;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int y = threadIdx.y + i * 8;
    const bool inside = depth + y < all.depth && line + x < all.lines;
    tile[y][x] = inside ? from[static_cast<int64_t>(depth + y) * all.from_depth + line + x] : 0;
  }
  __syncthreads();
  if (depth + x >= all.depth && !all.fills) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int y = threadIdx.y + i * 8, l = line + y;
    if (l >= all.lines) break;
    const int whole = all.split == 1 ? l : l / all.split, rest = l - whole * all.split;
    lay(to + static_cast<int64_t>(whole) * all.outer + static_cast<int64_t>(rest) * all.inner + x,
        all.low, tile[x][y]);
  }
}

template <class Element>
void turn(const float* from, Element* to, const Turn& all, cudaStream_t on) {
  const dim3 grid((all.lines + 31) / 32, (all.depth + 31) / 32, all.batch);
  turn_kernel<<<grid, dim3(32, 8), 0, on>>>(from, to, all);
}

}  // namespace hopper
}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_HOPPER_LAYS_CUH_

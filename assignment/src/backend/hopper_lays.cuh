/*!
 * \file hopper_lays.cuh
 * \brief How operands of Hopper's convolutions come to lie as wgmma wants them, and parts of
 * results as they belong.
 */
#ifndef DLSYS_BACKEND_HOPPER_LAYS_CUH_
#define DLSYS_BACKEND_HOPPER_LAYS_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "launch.cuh"
#include "numbers.h"

namespace dlsys {
namespace backend {
namespace hopper {

/*! \brief The sum of parts: an element a thread, or four where these are whole packs. */
template <class Element, int each>
__global__ void add_parts_kernel(Element* out, const float* parts, int many, int64_t size) {
  struct alignas(each * sizeof(float)) Floats {
    float of[each];
  };
  struct alignas(each * sizeof(Element)) Pack {
    Element of[each];
  };
  wait_for_predecessor();
  const int64_t i = (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) * each;
  if (i >= size) return;
  Floats sum = {};
#pragma unroll 4
  for (int part = 0; part < many; ++part) {
    const Floats own = *reinterpret_cast<const Floats*>(parts + part * size + i);
    for (int j = 0; j < each; ++j) sum.of[j] += own.of[j];
  }
  Pack made;
  for (int j = 0; j < each; ++j) made.of[j] = Element(sum.of[j]);
  *reinterpret_cast<Pack*>(out + i) = made;
}

template <class Element>
void add_parts(Element* out, const float* parts, int many, int64_t size, cudaStream_t on) {
  const bool packed = size % 4 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0 &&
                      reinterpret_cast<uintptr_t>(parts) % 16 == 0;
  const unsigned blocks = static_cast<unsigned>((size / (packed ? 4 : 1) + 255) / 256);
  if (packed)
    launch_early(add_parts_kernel<Element, 4>, blocks, 256, 0, on, out, parts, many, size);
  else
    launch_early(add_parts_kernel<Element, 1>, blocks, 256, 0, on, out, parts, many, size);
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

/*! \brief Launches of these: lines of a block are four where there are blocks enough. */
struct Launch {
  int many, bytes;
  dim3 grid;

  Launch(int lines, int channels, int taps) {
    const int across = (channels + kAcross - 1) / kAcross;
    many = taps <= 16 && lines / 4 * across >= 1024 ? 4 : 1;
    bytes = many * kAcross * taps * static_cast<int>(sizeof(float));
    grid = dim3(across, (lines + many - 1) / many);
  }
};

/*! \brief What a block does of (lines, channels, taps): a warp has all channels of a line and tap,
 * a team of threads a line. */
struct OfLines {
  int first, begin, here, count, team, own, place;

  __device__ OfLines(int lines, int channels, int taps, int many)
      : first(blockIdx.x * kAcross),
        begin(blockIdx.y * many),
        here(min(many, lines - begin)),
        count(min(kAcross, channels - first) * taps),
        team(blockDim.x / many),
        own(threadIdx.x / team),
        place(threadIdx.x % team) {}
};

/*! \brief The sum of parts, each (lines, taps, channels), as (lines, channels, taps). shared: a
 * float for each line, channel and tap. */
static __global__ void join_kernel(float* out, const float* parts, int of_sum, int64_t size,
                                   int lines, int channels, int taps, int many) {
  extern __shared__ float sums[];
  wait_for_predecessor();
  const OfLines all(lines, channels, taps, many);
  const int lane = threadIdx.x % kAcross, channel = all.first + lane;
  for (int row = threadIdx.x / kAcross; channel < channels && row < all.here * taps;
       row += blockDim.x / kAcross) {
    const float* const from = parts + (all.begin * taps + row) * channels + channel;
    float sum = 0;
#pragma unroll 8
    for (int part = 0; part < of_sum; ++part) sum += from[part * size];
    const int line = row / taps;
    sums[(line * kAcross + lane) * taps + row - line * taps] = sum;
  }
  __syncthreads();
  if (all.own >= all.here) return;
  float* const to = out + ((all.begin + all.own) * channels + all.first) * taps;
  for (int i = all.place; i < all.count; i += all.team) to[i] = sums[all.own * kAcross * taps + i];
}

/*! \brief The other way: from (lines, channels, taps) to (taps, lines, channels), whose lines are
 * `lead` apart. */
template <class Element>
__global__ void split_kernel(const float* from, Element* to, int lines, int channels, int taps,
                             int lead, int64_t low, int many) {
  extern __shared__ float numbers[];
  wait_for_predecessor();
  const OfLines all(lines, channels, taps, many);
  if (all.own < all.here) {
    const float* const line = from + ((all.begin + all.own) * channels + all.first) * taps;
    float* const own = numbers + all.own * kAcross * taps;
#pragma unroll 8
    for (int i = all.place; i < all.count; i += all.team) own[i] = line[i];
  }
  __syncthreads();
  const int lane = threadIdx.x % kAcross, channel = all.first + lane;
  if (channel >= channels) return;
  for (int row = threadIdx.x / kAcross; row < all.here * taps; row += blockDim.x / kAcross) {
    const int line = row / taps, tap = row - line * taps;
    lay(to + (tap * lines + all.begin + line) * lead + channel, low,
        numbers[(line * kAcross + lane) * taps + tap]);
  }
}

template <class Element>
void split(const float* from, Element* to, int lines, int channels, int taps, int lead, int64_t low,
           cudaStream_t on) {
  const Launch all(lines, channels, taps);
  launch_early(split_kernel<Element>, all.grid, 256, all.bytes, on, from, to, lines, channels, taps,
               lead, low, all.many);
}

inline void join(float* out, const float* parts, int of_sum, int64_t size, int lines, int channels,
                 int taps, cudaStream_t on) {
  const Launch all(lines, channels, taps);
  launch_early(join_kernel, all.grid, 256, all.bytes, on, out, parts, of_sum, size, lines, channels,
               taps, all.many);
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
  wait_for_predecessor();
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
  launch_early(turn_kernel<Element>, grid, dim3(32, 8), 0, on, from, to, all);
}

}  // namespace hopper
}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_HOPPER_LAYS_CUH_

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

/*! \brief Numbers that are read or written at once. */
template <int each, class Element>
struct alignas(each * sizeof(Element)) Pack {
  Element of[each];
};
template <int each>
using Floats = Pack<each, float>;

/*! \brief The same, rounded. */
template <class Element, int each>
__device__ inline Pack<each, Element> rounded(const Floats<each>& numbers) {
  Pack<each, Element> found;
  for (int j = 0; j < each; ++j) found.of[j] = Element(numbers.of[j]);
  return found;
}

/*! \brief The sum of parts: an element a thread, or four where these are whole packs. */
template <class Element, int each>
__global__ void add_parts_kernel(Element* out, const float* parts, int many, int64_t size) {
  wait_for_predecessor();
  const int64_t i = (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) * each;
  if (i >= size) return;
  Floats<each> sum = {};
#pragma unroll 4
  for (int part = 0; part < many; ++part) {
    const Floats<each> own = *reinterpret_cast<const Floats<each>*>(parts + part * size + i);
    for (int j = 0; j < each; ++j) sum.of[j] += own.of[j];
  }
  *reinterpret_cast<Pack<each, Element>*>(out + i) = rounded<Element>(sum);
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
const int kFewTaps = 16;

/*! \brief Launches of these: lines of a block are four where there are blocks enough. */
struct Launch {
  int many, bytes;
  dim3 grid;

  Launch(int lines, int channels, int taps) {
    const int across = (channels + kAcross - 1) / kAcross;
    many = taps <= kFewTaps && lines / 4 * across >= 1024 ? 4 : 1;
    bytes = many * kAcross * taps * static_cast<int>(sizeof(float));
    grid = dim3(across, (lines + many - 1) / many);
  }
};

/*! \brief What a block does of (lines, channels, taps): a warp has all channels of a line and tap,
 * a team of threads a line. */
struct OfLines {
  int first, begin, here, count, team, own, place;

  __device__ OfLines(int lines, int channels, int taps, int many, int x, int y)
      : first(x * kAcross),
        begin(y * many),
        here(min(many, lines - begin)),
        count(min(kAcross, channels - first) * taps),
        team(blockDim.x / many),
        own(threadIdx.x / team),
        place(threadIdx.x % team) {}
};

/*!
 * \brief The sum of parts, each (lines, taps, channels), as (lines, channels, taps).
 *
 * A thread has `each` channels of a line and tap, and adds up those of some of many parts, some of
 * which are on their way at once. shared: a float for each line, channel and tap, and each of
 * `groups` of parts.
 */
template <int each, class Element>
__global__ void join_kernel(Element* out, const float* parts, int of_sum, int64_t size, int lines,
                            int channels, int taps, int many, int groups) {
  extern __shared__ __align__(16) float sums[];
  const int kAtOnce = 4, kPacks = kAcross / each;
  wait_for_predecessor();
  const OfLines all(lines, channels, taps, many, blockIdx.x, blockIdx.y);
  const int rows = all.here * taps, own = threadIdx.x % kPacks * each;
  const int of_group = many * kAcross * taps;
  for (int item = threadIdx.x / kPacks; all.first + own < channels && item < rows * groups;
       item += blockDim.x / kPacks) {
    const int group = item / rows, row = item - group * rows, line = row / taps;
    const float* const from = parts + (all.begin * taps + row) * channels + all.first + own;
    const int end = (group + 1) * of_sum / groups;
    Floats<each> sum = {};
    for (int part = group * of_sum / groups; part < end; part += kAtOnce) {
      Floats<each> found[kAtOnce] = {};
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (part + i < end)
          found[i] = *reinterpret_cast<const Floats<each>*>(from + (part + i) * size);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        for (int j = 0; j < each; ++j) sum.of[j] += found[i].of[j];
    }
    float* const to = sums + group * of_group + (line * kAcross + own) * taps + row - line * taps;
    for (int j = 0; j < each; ++j) to[j * taps] = sum.of[j];
  }
  __syncthreads();
  if (all.own >= all.here) return;
  Element* const to = out + ((all.begin + all.own) * channels + all.first) * taps;
  for (int i = all.place * each; i < all.count; i += all.team * each) {
    Floats<each> sum = {};
    for (int group = 0; group < groups; ++group) {
      const float* const from = sums + group * of_group + all.own * kAcross * taps + i;
      const Floats<each> found = *reinterpret_cast<const Floats<each>*>(from);
      for (int j = 0; j < each; ++j) sum.of[j] += found.of[j];
    }
    *reinterpret_cast<Pack<each, Element>*>(to + i) = rounded<Element>(sum);
  }
}

/*! \brief A block's part of the other way: from (lines, channels, taps) to (taps, lines, channels),
 * whose lines are `lead` apart. */
template <class Element>
__device__ void split_lines(float* numbers, const float* from, Element* to, const OfLines& all,
                            int lines, int channels, int taps, int lead, int64_t low) {
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
__global__ void split_kernel(const float* from, Element* to, int lines, int channels, int taps,
                             int lead, int64_t low, int many) {
  extern __shared__ float numbers[];
  wait_for_predecessor();
  split_lines(numbers, from, to, OfLines(lines, channels, taps, many, blockIdx.x, blockIdx.y),
              lines, channels, taps, lead, low);
}

template <class Element>
void split(const float* from, Element* to, int lines, int channels, int taps, int lead, int64_t low,
           cudaStream_t on) {
  const Launch all(lines, channels, taps);
  launch_early(split_kernel<Element>, all.grid, 256, all.bytes, on, from, to, lines, channels, taps,
               lead, low, all.many);
}

template <int each, class Element>
void join(Element* out, const float* parts, int of_sum, int64_t size, int lines, int channels,
          int taps, cudaStream_t on) {
  const Launch all(lines, channels, taps);
  const int groups = taps <= kFewTaps ? (of_sum + 15) / 16 : 1;  // there are 72 parts at most
  const int items = all.many * taps * groups * (kAcross / each);
  const int threads = items < 1024 ? (items + 31) / 32 * 32 : 1024;
  launch_early(join_kernel<each, Element>, all.grid, threads, all.bytes * groups, on, out, parts,
               of_sum, size, lines, channels, taps, all.many, groups);
}

template <class Element>
void join(Element* out, const float* parts, int of_sum, int64_t size, int lines, int channels,
          int taps, cudaStream_t on) {
  const bool packed = channels % 4 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0 &&
                      reinterpret_cast<uintptr_t>(parts) % 16 == 0;
  (packed ? join<4, Element> : join<1, Element>)(out, parts, of_sum, size, lines, channels, taps,
                                                 on);
}

/*! \brief A matrix, or a batch of them, and how it is laid the other way: element (d, l) from
 * d * from_depth + l comes to l / split * outer + l % split * inner + d / 32 * apart + d % 32. */
struct Turn {
  int lines, depth, batch, from_depth, from_batch, split, outer, inner, apart, to_batch;
  bool fills;   // the last 32 up, with zeros
  int64_t low;  // how far behind lows lie, or 0
};

/*! \brief Lays some tiles of it side by side, through shared memory; of 32 x 8 threads this is
 * (x, y). */
template <int tiles, class Element>
__device__ void turn_tiles(float (&tile)[tiles][32][33], const float* from, Element* to,
                           const Turn& all, int line, int depth, int x, int first_y) {
#pragma unroll
  for (int i = 0; i < 4 * tiles; ++i) {
    const int y = first_y + i % 4 * 8, l = line + i / 4 * 32 + x;
    const bool inside = depth + y < all.depth && l < all.lines;
    tile[i / 4][y][x] = inside ? from[static_cast<int64_t>(depth + y) * all.from_depth + l] : 0;
  }
  __syncthreads();
  if (depth + x >= all.depth && !all.fills) return;
#pragma unroll
  for (int i = 0; i < 4 * tiles; ++i) {
    const int y = first_y + i % 4 * 8, l = line + i / 4 * 32 + y;
    if (l >= all.lines) break;
    const int whole = all.split == 1 ? l : l / all.split, rest = l - whole * all.split;
    lay(to + static_cast<int64_t>(whole) * all.outer + static_cast<int64_t>(rest) * all.inner + x,
        all.low, tile[i / 4][x][y]);
  }
}

template <class Element>
__global__ void turn_kernel(const float* from, Element* to, const Turn all) {
  __shared__ float tile[1][32][33];
  wait_for_predecessor();
  turn_tiles(tile, from + static_cast<int64_t>(blockIdx.z) * all.from_batch,
             to + static_cast<int64_t>(blockIdx.z) * all.to_batch +
                 static_cast<int64_t>(blockIdx.y) * all.apart,
             all, blockIdx.x * 32, blockIdx.y * 32, threadIdx.x, threadIdx.y);
}

template <class Element>
void turn(const float* from, Element* to, const Turn& all, cudaStream_t on) {
  const dim3 grid((all.lines + 31) / 32, (all.depth + 31) / 32, all.batch);
  launch_early(turn_kernel<Element>, grid, dim3(32, 8), 0, on, from, to, all);
}

const int kTiles = 4;  // that a block of the next kernel turns
typedef float Tiles[kTiles][32][33];

/*! \brief Weights (filters, channels, taps) of one convolution, and how they are laid: (taps,
 * filters, channels), or `turned` (taps, channels, filters). */
struct Weights {
  const float* from;
  void* to;
  int filters, channels, taps;
  bool turned;
  int first;  // the number of the first block that lays them

  __host__ __device__ int lines() const { return taps <= kFewTaps ? 16 : 1; }  // of a block
  /*! \brief Blocks side by side. */
  __host__ __device__ int across() const {
    return turned ? (channels * taps + 32 * kTiles - 1) / (32 * kTiles)
                  : (channels + kAcross - 1) / kAcross;
  }
  int blocks() const {
    const int down = turned ? 32 : lines();
    return across() * ((filters + down - 1) / down);
  }
  int bytes() const {
    const size_t numbers = lines() * kAcross * taps;
    return static_cast<int>(turned ? sizeof(Tiles) : numbers * sizeof(float));
  }
};

/*! \brief Those of some convolutions: as many as a launch can be told of. */
const int kMostWeights = 64;
struct ManyWeights {
  int count;
  Weights of[kMostWeights];
};

/*! \brief Lays them all. block: 256 threads. */
template <class Element>
__global__ void lay_weights_kernel(const __grid_constant__ ManyWeights all) {
  extern __shared__ float numbers[];
  wait_for_predecessor();
  const int block = static_cast<int>(blockIdx.x);
  int first = 0;
  for (int end = all.count; end - first > 1;) {
    const int middle = (first + end) / 2;
    (all.of[middle].first <= block ? first : end) = middle;
  }
  const Weights& own = all.of[first];
  const int number = block - own.first, channels = own.channels, taps = own.taps;
  const int x = number % own.across(), y = number / own.across();
  Element* const to = static_cast<Element*>(own.to);
  if (own.turned)
    turn_tiles(*reinterpret_cast<Tiles*>(numbers), own.from, to + y * 32,
               {channels * taps, own.filters, 1, channels * taps, 0, taps, own.filters,
                channels * own.filters, 0, 0, false, 0},
               x * 32 * kTiles, y * 32, threadIdx.x % 32, threadIdx.x / 32);
  else
    split_lines(numbers, own.from, to, OfLines(own.filters, channels, taps, own.lines(), x, y),
                own.filters, channels, taps, channels, 0);
}

/*!
 * \brief Lays weights of convolutions.
 * \param data where each goes, then where each lies.
 * \param n how many there are; for each filters, channels, taps, whether it is turned.
 */
template <class Element>
int lay_weights(char* const* data, const int64_t* n, cudaStream_t on) {
  ManyWeights all;
  const int64_t count = *n++;
  for (int64_t begin = 0; begin < count; begin += kMostWeights) {
    all.count = static_cast<int>(count - begin < kMostWeights ? count - begin : kMostWeights);
    int blocks = 0, bytes = 0;
    for (int i = 0; i < all.count; ++i, n += 4) {
      const auto number = [n](int j) { return static_cast<int>(n[j]); };
      all.of[i] = {reinterpret_cast<const float*>(data[count + begin + i]),
                   data[begin + i],
                   number(0),
                   number(1),
                   number(2),
                   n[3] != 0,
                   blocks};
      blocks += all.of[i].blocks();
      bytes = all.of[i].bytes() > bytes ? all.of[i].bytes() : bytes;
    }
    launch_early(lay_weights_kernel<Element>, blocks, 256, bytes, on, all);
  }
  return cudaGetLastError() == cudaSuccess ? 0 : -1;
}

}  // namespace hopper
}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_HOPPER_LAYS_CUH_

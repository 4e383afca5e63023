/*!
 * \file implicit.cuh
 * \brief Convolutions as matrix products whose columns are never written: implicit GEMM.
 *
 *     value     out[n, f, p] = sum(w[f, t] * x[n, t, p])       a is w, b gathers from x
 *     data      out[n, c, h] = sum(w'[c, t] * g[n, t, h])      a is w', b gathers from g
 *     weights   out[f, t]    = sum(g[n, f, p] * x[n, t, p])    a is g, b gathers from x
 *
 * The product is that of gemm.cuh. What differs is how b comes into shared memory: element (t, p)
 * is the one at spots[p].at + taps[t].at of an image, or 0 if a bit of taps[t].bits is missing in
 * spots[p].bits. A spot is a window of the value, or an element of the data; a tap is a channel and
 * an element of the kernel. Both tables come from implicit.py. So no thread divides while it
 * multiplies, whatever the stride, padding and dilation.
 */
#ifndef DLSYS_BACKEND_IMPLICIT_CUH_
#define DLSYS_BACKEND_IMPLICIT_CUH_

#include "gemm.cuh"
#include "gpu_loops.cuh"

namespace dlsys {
namespace backend {

/*! \brief A place in an image, and which rows and columns of the kernel it meets there: for a tap,
 * its own. */
struct alignas(8) Place {
  int at;
  unsigned bits;
};

/*! \brief Starts copies of what `count` taps are of a spot, whose bits these are and which lies at
 * `from`; of 0 where they lie outside. Taps are read some at a time, before the first copy waits.
 */
template <int count>
__device__ inline void gather(float* to, int down, const float* from, unsigned bits,
                              const Place* tap, int apart) {
  const int batch = count < 8 ? count : 8;
#pragma unroll
  for (int first = 0; first < count; first += batch) {
    Place own[batch];
#pragma unroll
    for (int i = 0; i < batch; ++i) own[i] = tap[(first + i) * apart];
#pragma unroll
    for (int i = 0; i < batch; ++i)
      __pipeline_memcpy_async(to + (first + i) * down, from + own[i].at, 4,
                              (bits & own[i].bits) == own[i].bits ? 0 : 4);
  }
}

/*! \brief A launch: floats between images of the gathered operand, of the
 * result and, for weights, of a; the same between groups of a, the gathered one and the result. */
struct Implicit {
  Extents e;
  int count;  // spots of an image
  Divisor by_count;
  int64_t image, image_out, image_a;
  int64_t group, group_out, group_a;
  int tiles;  // along m, in a group
  const Place* of_spots;
  const Place* of_taps;

  /*! \brief In which image a spot of all images lies. */
  __device__ int image_of(int spot) const {
    return static_cast<int>(by_count.quotient(static_cast<uint32_t>(spot)));
  }

  explicit Implicit(const int64_t* n, const char* spots_at, const char* taps_at)
      : e{static_cast<int>(n[0]), static_cast<int>(n[1]), static_cast<int>(n[2]), 0, 0,
          static_cast<int>(n[3]), static_cast<int>(n[4])},
        count(static_cast<int>(n[5])),
        by_count(Divisor::of(n[5])),
        image(n[6]),
        image_out(n[7]),
        image_a(n[8]),
        group(n[9]),
        group_out(n[10]),
        group_a(n[11]),
        tiles(0),
        of_spots(reinterpret_cast<const Place*>(spots_at)),
        of_taps(reinterpret_cast<const Place*>(taps_at)) {}
};

/*! \brief The gathered operand of value and data: its lines are spots, K are taps. A thread has one
 * spot, and some taps that follow one another. */
template <class T>
struct GatheredSpots : Slice<T, T::columns, false, false> {
  typedef Slice<T, T::columns, false, false> Plain;
  static_assert(Plain::in_last == Plain::rows, "whole rounds");
  const Place* tap;
  unsigned bits;

  __device__ GatheredSpots(const float* x, const Implicit& all, int first, int begin, int,
                           int thread)
      : Plain(x, 0, 0, 0, 0, 0, 0),
        tap(all.of_taps + begin + thread / Plain::across * Plain::rounds) {
    const int line = first + thread % Plain::across;
    bits = 0;
    if (line < all.e.n) {
      const int image = all.image_of(line);
      const Place spot = all.of_spots[line - image * all.count];
      this->from = x + image * all.image + spot.at;
      bits = spot.bits;
    }
    this->to = thread / Plain::across * Plain::rounds * Plain::stride + thread % Plain::across;
  }

  /*! \brief As Slice::copy. Behind the last tap there are some that no spot meets. */
  __device__ void copy(float* shared) {
    gather<Plain::rounds>(shared + this->to, Plain::stride, this->from, bits, tap, 1);
    tap += T::depth;
  }
};

/*! \brief That of weights: its lines are taps, K are spots of all images. In a slice a thread has
 * one spot, and taps that lie apart. */
template <class T>
struct GatheredTaps : Slice<T, T::columns, true, false> {
  typedef Slice<T, T::columns, true, false> Plain;
  static_assert(Plain::in_last == Plain::rows, "whole rounds");
  const Place* spots;
  const Place* tap;
  int spot, count, left;  // in its image; of an image; of K
  int64_t image;

  __device__ GatheredTaps(const float* x, const Implicit& all, int first, int begin, int end,
                          int thread)
      : Plain(x, 0, 0, 0, 0, 0, thread),
        spots(all.of_spots),
        tap(all.of_taps + first + thread / Plain::across),
        count(all.count),
        image(all.image) {
    const int k = begin + thread % Plain::across, number = all.image_of(k);
    spot = k - number * count;
    left = end - k;
    this->from = x + number * image;
  }

  /*! \brief As Slice::copy. Behind the last tap there are some that no spot meets. */
  __device__ void copy(float* shared) {
    const int rows = Plain::threads / Plain::across,
              down = Plain::turns ? rows : rows * Plain::stride;
    const Place own = left > 0 ? spots[spot] : Place{0, 0};
    gather<Plain::rounds>(shared + this->to, down, this->from + own.at, own.bits, tap, rows);
    left -= T::depth;
    for (spot += T::depth; spot >= count; spot -= count) this->from += image;
  }
};

/*! \brief The gradients, as the operand a of weights: lines are filters, K are windows of all
 * images.
 */
template <class T, bool packs>
struct OverImages : Slice<T, T::rows, true, packs> {
  typedef Slice<T, T::rows, true, packs> Plain;
  int spot, count;
  int64_t jump;  // from the end of an image's line to its next one

  __device__ OverImages(const float* g, const Implicit& all, int first, int begin, int end,
                        int thread)
      : Plain(g, all.count, first, all.e.m, begin, end, thread),
        count(all.count),
        jump(all.image_a - count) {
    const int k = begin + thread % Plain::across * Plain::width, number = all.image_of(k);
    spot = k - number * count;
    this->from += number * jump;
  }

  __device__ void copy(float* shared) {
    Plain::copy(shared);
    for (spot += T::depth; spot >= count; spot -= count) this->from += jump;
  }
};

/*! \brief The weights, as the operand a of value and data: a plain matrix. */
template <class T, bool packs>
struct Weights : Slice<T, T::rows, true, packs> {
  __device__ Weights(const float* w, const Implicit& all, int first, int begin, int end, int thread)
      : Slice<T, T::rows, true, packs>(w, all.e.k, first, all.e.m, begin, end, thread) {}
};

/*! \brief What multiply_part is told, as Operands. */
template <class T, bool of_weights, bool packs>
struct Gathering {
  typedef std::conditional_t<of_weights, OverImages<T, packs>, Weights<T, packs>> SliceA;
  typedef std::conditional_t<of_weights, GatheredTaps<T>, GatheredSpots<T>> SliceB;
  static const int floats = SliceA::floats + SliceB::floats;
  typedef std::conditional_t<T::tf32, OfFragments<T, SliceA, SliceB>, OfFloats<T, SliceA, SliceB>>
      Warp;
};

/*!
 * \brief The kernel. grid: tiles along n, tiles along m of all groups, parts of K.
 * \param partial, arrived as in gemm_kernel.
 */
template <class T, bool of_weights, bool packs>
__global__ __launch_bounds__(T::threads, T::blocks) void implicit_kernel(
    float* __restrict__ out, const float* __restrict__ a, const float* __restrict__ b, Implicit all,
    float* partial, unsigned* arrived) {
  typedef Gathering<T, of_weights, packs> Both;
  extern __shared__ __align__(16) float gemm_shared[];
  const Extents& e = all.e;
  const int thread = threadIdx.x, group = blockIdx.y / all.tiles;
  const typename Both::Warp warp(thread);
  const int first_row = (blockIdx.y - group * all.tiles) * T::rows;
  const int first_column = blockIdx.x * T::columns;
  const int begin = blockIdx.z * e.of_part * T::depth;
  const int end = e.k < begin + e.of_part * T::depth ? e.k : begin + e.of_part * T::depth;
  float none = 0;
  float sum[T::of_rows][T::of_columns] = {};
  const typename Both::SliceA of_a(a + group * all.group_a, all, first_row, begin, end, thread);
  const typename Both::SliceB of_b(b + group * all.group, all, first_column, begin, end, thread);
  multiply_part<T, Both, false>(sum, none, gemm_shared, warp, of_a, of_b,
                                (end - begin + T::depth - 1) / T::depth, false);
  if (e.parts > 1 && !add_up<T>(sum, none, e.parts, partial, arrived, false)) return;
  float* const to = out + group * all.group_out;
  warp.give(sum, 0, 1, [&](int row, int column, float value) {
    const int m = first_row + row, n = first_column + column;
    if (m >= e.m || n >= e.n) return;
    if (of_weights) {
      to[static_cast<int64_t>(m) * e.n + n] = value;
    } else {
      const int image = all.image_of(n), count = all.count;
      to[image * all.image_out + static_cast<int64_t>(m) * count + (n - image * count)] = value;
    }
  });
}

/*!
 * \brief Launches it.
 * \param data out, a, b, spots, taps, and room for parts, if there are some.
 * \param n m, n, k, parts, slices of a part, spots of an image, then what Implicit has; groups.
 */
template <class T, bool of_weights, bool packs>
int implicit(char* const* data, const int64_t* n, cudaStream_t on) {
  Implicit all(n, data[3], data[4]);
  all.tiles = (all.e.m + T::rows - 1) / T::rows;
  const int bytes = T::stages * 4 * Gathering<T, of_weights, packs>::floats;
  if (bytes > 47 * 1024)
    cudaFuncSetAttribute(implicit_kernel<T, of_weights, packs>,
                         cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const bool cuts = all.e.parts > 1;
  const dim3 grid((all.e.n + T::columns - 1) / T::columns, all.tiles * static_cast<unsigned>(n[12]),
                  all.e.parts);
  implicit_kernel<T, of_weights, packs><<<grid, T::threads, bytes, on>>>(
      reinterpret_cast<float*>(data[0]), reinterpret_cast<const float*>(data[1]),
      reinterpret_cast<const float*>(data[2]), all,
      cuts ? reinterpret_cast<float*>(data[5]) : nullptr,
      cuts ? reinterpret_cast<unsigned*>(data[6]) : nullptr);
  return launched();
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_IMPLICIT_CUH_

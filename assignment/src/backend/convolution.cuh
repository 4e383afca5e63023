/*!
 * \file convolution.cuh
 * \brief The GPU back end's convolutions: a thread for each element of the result.
 *
 * Each thread adds what comes to its element in one order: no atomics. They are the plain form
 * beside im2col, which copies windows and leaves the rest to the matrix product.
 */
#ifndef DLSYS_BACKEND_CONVOLUTION_CUH_
#define DLSYS_BACKEND_CONVOLUTION_CUH_

#include <climits>

#include "gpu_loops.cuh"
#include "windows.h"

namespace dlsys {
namespace backend {

/*!
 * \brief Which plane an element of images lies in, and where there.
 * \tparam Index a division of 64-bit numbers takes five times as long as one of 32-bit ones.
 */
template <class Index>
struct Pixel {
  Index plane, h, w;

  __device__ Pixel(Index at, int64_t height, int64_t width) {
    const Index row = at / static_cast<Index>(width);
    plane = row / static_cast<Index>(height);
    h = row - plane * static_cast<Index>(height), w = at - row * static_cast<Index>(width);
  }
};

/*! \brief Six strides. */
struct OfColumns {
  int64_t steps[6];

  explicit OfColumns(const int64_t* n) {
    for (int i = 0; i < 6; ++i) steps[i] = n[i];
  }
};

/*! \brief A thread writes out[at] = value(at), for each element of the result. */
template <class T, class Index, class Value>
__global__ void each_kernel(T* out, Index total, Value value) {
  const Index step = static_cast<Index>(gridDim.x) * kThreads;
  Index at = static_cast<Index>(blockIdx.x) * kThreads + threadIdx.x;
  for (; at < total; at += step) out[at] = value(at);
}

/*! \brief The same; `others` is the size of what else a value counts. */
template <class T, class Value>
int each(T* out, int64_t total, Value value, cudaStream_t on, int64_t others = 0) {
  if (total == 0) return 0;
  const int blocks = blocks_for(total);
  // And so is what a thread has behind its last element.
  if (std::max(total, others) <= INT_MAX / 2)
    each_kernel<<<blocks, kThreads, 0, on>>>(out, static_cast<int>(total), value);
  else
    each_kernel<<<blocks, kThreads, 0, on>>>(out, total, value);
  return launched();
}

/*! \brief The same by four threads each, which add up value(at, 0) to value(at, 3). */
template <class T, class Value>
__global__ void each_by_four_kernel(T* out, int total, Value value) {
  const int step = static_cast<int>(gridDim.x) * kThreads / 4, part = threadIdx.x % 4;
  const unsigned four = 15u << threadIdx.x % kWarp / 4 * 4;
  for (int at = (blockIdx.x * kThreads + threadIdx.x) / 4; at < total; at += step) {
    T sum = value(at, part);
    sum += __shfl_xor_sync(four, sum, 1);
    sum += __shfl_xor_sync(four, sum, 2);
    if (part == 0) out[at] = sum;
  }
}

/*! \brief See the instruction Fold. */
template <class T>
struct Folded {
  const T* columns;
  Windows all;
  OfColumns s;

  template <class Index>
  __device__ T operator()(Index at) const {
    const Pixel<Index> own(at, all.down.size, all.across.size);
    const int64_t image = own.plane / all.channels, c = own.plane - image * all.channels;
    const T* const x = columns + image * s.steps[0] + c * s.steps[1];
    T sum = 0;
    for (int64_t i = 0; i < all.down.kernel; ++i) {
      const int64_t oh = all.down.window_of(own.h, i);
      if (oh < 0) continue;
      for (int64_t j = 0; j < all.across.kernel; ++j) {
        const int64_t ow = all.across.window_of(own.w, j);
        if (ow < 0) continue;
        sum += x[i * s.steps[2] + j * s.steps[3] + oh * s.steps[4] + ow * s.steps[5]];
      }
    }
    return sum;
  }
};

template <class T>
int fold(T* out, const T* columns, const int64_t* n, cudaStream_t on) {
  const Windows all(n);
  const Folded<T> value = {columns, all, OfColumns(n)};
  return each(out, all.planes() * all.plane(), value, on);
}

/*! \brief Kernels of kSide x kSide have kernels of their own, whose taps are unrolled. */
const int kSide = 3, kTaps = kSide * kSide;

/*! \brief Whether a convolution has such kernels; places in a plane are 32-bit there. */
inline bool is_unrolled(const Convolution& all) {
  for (const Slide& side : {all.down, all.across})
    if (side.padding > INT_MAX / 8 || side.dilation > INT_MAX / 16) return false;
  return all.down.kernel == kSide && all.across.kernel == kSide && all.plane() <= INT_MAX / 2 &&
         all.images * all.out() <= INT_MAX / 2;
}

/*! \brief sum + w * (the element of x at a place); at -1 there is none. Without a branch, so that
 * the elements of many taps are on their way at once. */
template <class T>
__device__ inline T with_tap(T sum, T w, const T* x, int place) {
  const T element = place >= 0 ? x[place] : T(0), next = sum + w * element;
  return place >= 0 ? next : sum;  // w may be infinite
}

/*! \brief Adds up all taps of `count` kernels and planes, which lie so far apart. */
template <class T>
__device__ inline T sum_of_taps(const T* w, int64_t w_apart, const T* x, int64_t x_apart,
                                const int (&places)[kTaps], int64_t count) {
  T sum = 0;
#pragma unroll 4
  for (int64_t n = 0; n < count; ++n, w += w_apart, x += x_apart)
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) sum = with_tap(sum, w[tap], x, places[tap]);
  return sum;
}

/*!
 * \brief out[f] = sum(w[f, c, i, j] * x[c, window, i, j]) over the channels c of f's group.
 * \tparam unrolled whether is_unrolled.
 */
template <class T, bool unrolled>
struct DirectValue {
  const T* x;
  const T* w;
  Convolution all;

  template <class Index>
  __device__ T operator()(Index at) const {
    const Pixel<Index> own(at, all.down.out, all.across.out);
    const Index image = own.plane / static_cast<Index>(all.filters);
    const Index f = own.plane - image * static_cast<Index>(all.filters);
    const Index group = f / static_cast<Index>(all.height());
    const T* plane = x + (image * all.channels + group * all.depth()) * all.plane();
    const T* weight = w + f * all.filter();
    if constexpr (unrolled) {
      int places[kTaps];
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        const int64_t h = all.down.source(own.h, tap / kSide);
        const int64_t v = all.across.source(own.w, tap % kSide);
        const bool is_there = all.down.has(h) && all.across.has(v);
        places[tap] = is_there ? static_cast<int>(h * all.across.size + v) : -1;
      }
      return sum_of_taps(weight, kTaps, plane, all.plane(), places, all.depth());
    }
    T sum = 0;
    for (int64_t c = 0; c < all.depth(); ++c, plane += all.plane())
      for (int64_t i = 0; i < all.down.kernel; ++i) {
        const int64_t h = all.down.source(own.h, i);
        for (int64_t j = 0; j < all.across.kernel; ++j, ++weight) {
          const int64_t v = all.across.source(own.w, j);
          if (all.down.has(h) && all.across.has(v)) sum += *weight * plane[h * all.across.size + v];
        }
      }
    return sum;
  }
};

/*! \brief The gradient of x: each output's, times the weight by which it read the element. */
template <class T, bool unrolled>
struct DirectData {
  const T* w;
  const T* g;
  Convolution all;

  template <class Index>
  __device__ T operator()(Index at) const {
    return over_filters(at, 0, all.height());
  }
  /*! \brief A quarter of the filters' part of it. */
  __device__ T operator()(int at, int quarter) const {
    return over_filters(at, quarter * all.height() / 4, (quarter + 1) * all.height() / 4);
  }

  /*! \brief The part of filters begin .. end - 1 of a group. */
  template <class Index>
  __device__ T over_filters(Index at, int64_t begin, int64_t end) const {
    const Pixel<Index> own(at, all.down.size, all.across.size);
    const Index image = own.plane / static_cast<Index>(all.channels);
    const Index c = own.plane - image * static_cast<Index>(all.channels);
    const Index group = c / static_cast<Index>(all.depth());
    const Index in_group = c - group * static_cast<Index>(all.depth());
    const T* const grad = g + (image * all.filters + group * all.height() + begin) * all.out();
    const T* weight = w + ((group * all.height() + begin) * all.depth() + in_group) * all.kernel();
    if constexpr (unrolled) {
      int places[kTaps];
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        const int64_t oh = all.down.window_of(own.h, tap / kSide);
        const int64_t ow = all.across.window_of(own.w, tap % kSide);
        places[tap] = oh >= 0 && ow >= 0 ? static_cast<int>(oh * all.across.out + ow) : -1;
      }
      return sum_of_taps(weight, all.filter(), grad, all.out(), places, end - begin);
    }
    T sum = 0;
    for (int64_t i = 0; i < all.down.kernel; ++i) {
      const int64_t oh = all.down.window_of(own.h, i);
      for (int64_t j = 0; j < all.across.kernel; ++j, ++weight) {
        const int64_t ow = all.across.window_of(own.w, j);
        if (oh < 0 || ow < 0) continue;
        const T* const window = grad + oh * all.across.out + ow;
#pragma unroll 4
        for (int64_t f = 0; f < end - begin; ++f)
          sum += weight[f * all.filter()] * window[f * all.out()];
      }
    }
    return sum;
  }
};

/*! \brief Threads that add up one element of a gradient of w, or all of a kernel: of a few windows,
 * and of more. */
const int kTeam = 512, kSmallTeam = 256, kLargeTeam = 1024;

/*! \brief Elements of a gradient of x up to which four threads share one's filters. */
const int64_t kByFour = 1 << 13;

/*! \brief Adds up what the block's threads have, some sums each: the sum of a row, in the thread of
 * its number. */
template <class T, int rows, int warps>
__device__ inline T add_up_team(T (&sums)[rows][warps], T (&own)[rows]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int across = 16; across > 0; across /= 2)
    for (int row = 0; row < rows; ++row) own[row] += __shfl_down_sync(~0u, own[row], across);
  if (lane == 0)
    for (int row = 0; row < rows; ++row) sums[row][warp] = own[row];
  __syncthreads();
  T sum = 0;
  if (threadIdx.x < rows)
    for (int i = 0; i < warps; ++i) sum += sums[threadIdx.x][i];
  return sum;
}

/*! \brief The gradient of w: sum(g[f, window] * x[c, window, i, j]) over images and windows. grid:
 * elements. */
template <class T>
__global__ __launch_bounds__(kTeam) void direct_weights_kernel(T* out, const T* x, const T* g,
                                                               Convolution all) {
  __shared__ T sums[1][kTeam / 32];
  const int64_t at = blockIdx.x;
  const Pixel<int64_t> own(at, all.down.kernel, all.across.kernel);  // a filter's channel
  const int64_t f = own.plane / all.depth(), in_group = own.plane - f * all.depth();
  const int64_t c = f / all.height() * all.depth() + in_group;
  // Windows that have the element: rows and columns of them, in all images.
  const int top = static_cast<int>(all.down.first(own.h));
  const int left = static_cast<int>(all.across.first(own.w));
  const int height = static_cast<int>(all.down.end(own.h)) - top;
  const int width = static_cast<int>(all.across.end(own.w)) - left;
  T sum[1] = {};
  if (height > 0 && width > 0) {
    const int64_t count = all.images * height * width;
#pragma unroll 4
    for (int64_t k = threadIdx.x; k < count; k += kTeam) {
      const int64_t row = k / width, image = row / height;
      const int64_t oh = top + row - image * height, ow = left + k - row * width;
      const int64_t place = all.down.source(oh, own.h) * all.across.size;
      sum[0] += g[(image * all.filters + f) * all.out() + oh * all.across.out + ow] *
                x[(image * all.channels + c) * all.plane() + place + all.across.source(ow, own.w)];
    }
  }
  const T total = add_up_team(sums, sum);
  if (threadIdx.x == 0) out[at] = total;
}

/*!
 * \brief The same where is_unrolled: a block has all elements of a filter's channel, or some, so
 * each of g is read once for them. grid: filters times channels of a group; parts of the windows,
 * whose results lie one behind the other; groups of `taps` elements.
 */
template <class T, int team, int taps>
__global__ __launch_bounds__(team) void unrolled_weights_kernel(T* out, const T* x, const T* g,
                                                                Convolution all) {
  __shared__ T sums[taps][team / 32];
  const int64_t f = blockIdx.x / all.depth(), in_group = blockIdx.x - f * all.depth();
  const int64_t c = f / all.height() * all.depth() + in_group;
  const T *const of_g = g + f * all.out(), *const of_x = x + c * all.plane();
  const int64_t g_apart = all.filters * all.out(), x_apart = all.channels * all.plane();
  const int height = static_cast<int>(all.down.out), width = static_cast<int>(all.across.out);
  const int count = static_cast<int>(all.images) * height * width;
  const int high = static_cast<int>(all.down.size), wide = static_cast<int>(all.across.size);
  const int down = static_cast<int>(all.down.dilation);
  const int along = static_cast<int>(all.across.dilation);
  const int of_part = (count - 1) / static_cast<int>(gridDim.y) + 1;
  const int begin = static_cast<int>(blockIdx.y) * of_part, end = min(count, begin + of_part);
  const int first_tap = taps == kTaps ? 0 : static_cast<int>(blockIdx.z) * taps;
  T sum[taps] = {};
#pragma unroll 4
  for (int k = begin + threadIdx.x; k < end; k += team) {
    const int row = k / width, image = row / height, oh = row - image * height;
    const int ow = k - row * width;
    const T grad = of_g[image * g_apart + oh * width + ow];
    const T* const plane = of_x + image * x_apart;
    const int first = static_cast<int>(all.down.source(oh, 0));
    const int left = static_cast<int>(all.across.source(ow, 0));
#pragma unroll
    for (int i = 0; i < taps; ++i) {
      const int tap = first_tap + i;
      const int h = first + tap / kSide * down, v = left + tap % kSide * along;
      const bool is_there = h >= 0 && h < high && v >= 0 && v < wide;
      sum[i] = with_tap(sum[i], grad, plane, is_there ? h * wide + v : -1);
    }
  }
  const T total = add_up_team(sums, sum);
  if (threadIdx.x < taps)
    out[(blockIdx.y * gridDim.x + blockIdx.x) * kTaps + first_tap + threadIdx.x] = total;
}

/*! \brief The sum of parts that lie so far apart. */
template <class T>
struct Added {
  const T* parts;
  int64_t count, apart;

  template <class Index>
  __device__ T operator()(Index at) const {
    T sum = 0;
#pragma unroll 8
    for (int64_t part = 0; part < count; ++part) sum += parts[part * apart + at];
    return sum;
  }
};

template <class T>
int direct_value(T* out, const T* x, const T* w, const int64_t* n, cudaStream_t on) {
  const Convolution all(n);
  const int64_t total = all.images * all.filters * all.out();
  if (is_unrolled(all)) return each(out, total, DirectValue<T, true>{x, w, all}, on);
  return each(out, total, DirectValue<T, false>{x, w, all}, on);
}

template <class T>
int direct_data(T* out, const T* w, const T* g, const int64_t* n, cudaStream_t on) {
  const Convolution all(n);
  const int64_t total = all.planes() * all.plane();
  if (!is_unrolled(all)) return each(out, total, DirectData<T, false>{w, g, all}, on);
  const DirectData<T, true> value = {w, g, all};
  if (total == 0 || total > kByFour || all.height() < 8) return each(out, total, value, on);
  const int blocks = static_cast<int>((4 * total + kThreads - 1) / kThreads);
  each_by_four_kernel<<<blocks, kThreads, 0, on>>>(out, static_cast<int>(total), value);
  return launched();
}

/*! \brief n: as Convolution has it, then how many parts of the windows are added in the end.
 * data[3]: room for these, if there are several. */
template <class T>
int direct_weights(T* out, const T* x, const T* g, char* const* data, const int64_t* n,
                   cudaStream_t on) {
  const Convolution all(n);
  const int64_t parts = n[0];
  const int64_t elements = all.filters * all.filter(), pairs = all.filters * all.depth();
  if (elements == 0) return 0;
  if (elements > INT_MAX) return -1;
  const unsigned blocks = static_cast<unsigned>(pairs);
  if (!is_unrolled(all))
    direct_weights_kernel<T><<<static_cast<unsigned>(elements), kTeam, 0, on>>>(out, x, g, all);
  else if (parts > 1) {
    T* const room = reinterpret_cast<T*>(data[3]);
    const dim3 grid(blocks, static_cast<unsigned>(parts));
    unrolled_weights_kernel<T, kTeam, kTaps><<<grid, kTeam, 0, on>>>(room, x, g, all);
    return each(out, elements, Added<T>{room, parts, elements}, on);
  } else if (all.images * all.out() <= 4 * kSmallTeam)
    unrolled_weights_kernel<T, kSmallTeam, kSide>
        <<<dim3(blocks, 1, kTaps / kSide), kSmallTeam, 0, on>>>(out, x, g, all);
  else
    unrolled_weights_kernel<T, kLargeTeam, kTaps><<<blocks, kLargeTeam, 0, on>>>(out, x, g, all);
  return launched();
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_CONVOLUTION_CUH_

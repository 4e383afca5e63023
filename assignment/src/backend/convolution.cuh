/*!
 * \file convolution.cuh
 * \brief The GPU back end's convolutions and pooling: a thread for each element of the result.
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

/*! \brief See the instruction MaxPool. */
template <class T>
struct Largest2d {
  const T* x;
  const T* y;
  Windows all;

  template <class Index>
  __device__ T operator()(Index at) const {
    const Pixel<Index> own(at, all.down.out, all.across.out);
    const int64_t first = own.plane * all.plane();
    return y[first + all.largest(x + first, own.h, own.w)];
  }
};

/*! \brief What numbers of T are compared and added as. */
template <class T>
struct Computed {
  typedef T Type;
};
template <>
struct Computed<BFloat16> {
  typedef float Type;
};

/*! \brief Windows by numbers of one kind: where 32 bits do, divisions take a fifth of the time. */
template <class Index>
struct Side {
  Index size, kernel, out, stride, padding, dilation;

  __device__ explicit Side(const Slide& of)
      : size(of.size),
        kernel(of.kernel),
        out(of.out),
        stride(of.stride),
        padding(of.padding),
        dilation(of.dilation) {}

  /*! \brief The first window that may have an element, and the one behind the last. */
  __device__ Index first(Index at) const {
    const Index before = at + padding - (kernel - 1) * dilation;
    return before <= 0 ? 0 : (before + stride - 1) / stride;
  }
  __device__ Index end(Index at) const { return min((at + padding) / stride + 1, out); }
  /*! \brief Calls body(element) for those of a window that are there, until it gives false. */
  template <class Body>
  __device__ bool each(Index window, Body body) const {
    Index at = window * stride - padding;
    for (Index k = 0; k < kernel; ++k, at += dilation)
      if (at >= 0 && at < size && !body(at)) return false;
    return true;
  }
};

/*! \brief As Largest2d, where channels are last. */
template <class T>
struct LargestLast {
  const T* x;
  const T* y;
  Windows all;

  template <class Index>
  __device__ T operator()(Index at) const {
    typedef typename Computed<T>::Type Number;
    const Side<Index> down(all.down), across(all.across);
    const Index channels = static_cast<Index>(all.channels), pixel = at / channels;
    const Pixel<Index> own(pixel, all.down.out, all.across.out);
    const int64_t first = own.plane * all.plane() * channels + (at - pixel * channels);
    Index found = -1;
    Number most = Number(0);
    down.each(own.h, [&](Index h) {
      return across.each(own.w, [&](Index w) {
        const Index place = (h * across.size + w) * channels;
        const Number value = Number(x[first + place]);
        if (found < 0 || value > most || value != value) found = place, most = value;
        return true;
      });
    });
    return y[first + found];
  }
};

/*! \brief What comes to an element from windows whose largest it is; channels are last. `y` has
 * what is largest in each. */
template <class T>
struct PlacedLast {
  const T* x;
  const T* g;
  const T* y;
  Windows all;

  template <class Index>
  __device__ T operator()(Index at) const {
    typedef typename Computed<T>::Type Number;
    const Side<Index> down(all.down), across(all.across);
    const Index channels = static_cast<Index>(all.channels), pixel = at / channels;
    const Pixel<Index> own(pixel, all.down.size, all.across.size);
    const Index channel = at - pixel * channels, place = own.h * across.size + own.w;
    const T* const image = x + own.plane * all.plane() * channels + channel;
    const int64_t first = own.plane * all.out() * channels + channel;
    const Number value = Number(image[place * channels]);
    Number sum = Number(0);
    for (Index h = down.first(own.h); h < down.end(own.h); ++h)
      for (Index w = across.first(own.w); w < across.end(own.w); ++w) {
        const int64_t window = first + (h * across.out + w) * channels;
        const Number most = Number(y[window]);
        const bool is_nan = most != most;
        if (is_nan ? value == value : value != most) continue;
        // It is the first of those that are equal, or the last NaN, if nobody says otherwise.
        bool is_own = false;
        const bool is_it = down.each(h, [&](Index i) {
          return across.each(w, [&](Index j) {
            if (i * across.size + j == place) return is_own = true;
            if (is_own != is_nan) return true;
            const Number other = Number(image[(i * across.size + j) * channels]);
            return is_nan ? other == other : other != most;
          });
        });
        if (is_it && is_own) sum += Number(g[window]);
      }
    return T(sum);
  }
};

/*! \brief Elements of an image that a block takes, down and across, and windows at one time. */
const int kTileDown = 16, kTileAcross = 64, kBand = 1440;

/*!
 * \brief The same, from the element's side: it adds up what comes from windows whose largest it is.
 *
 * A block takes a tile of some images. It finds the largest element of each window that reaches
 * into the tile, once; then each thread looks which windows have found its elements, in their
 * order, as on a CPU. grid: tiles of an image, images of all channels.
 */
template <class T>
__global__ __launch_bounds__(kThreads) void place_kernel(T* out, const T* x, const T* g,
                                                         Windows all) {
  const int kOfThread = kTileDown * kTileAcross / kThreads, kApart = kThreads / kTileAcross;
  __shared__ short found[kBand];  // where in the tile; -1 if elsewhere
  const int64_t tiles = (all.across.size + kTileAcross - 1) / kTileAcross;
  const int64_t top = blockIdx.x / tiles * kTileDown, left = blockIdx.x % tiles * kTileAcross;
  const int64_t first_h = all.down.first_of(top), end_h = all.down.end_of(top, kTileDown);
  const int64_t first_w = all.across.first_of(left), end_w = all.across.end_of(left, kTileAcross);
  const int row = threadIdx.x / kTileAcross, column = threadIdx.x % kTileAcross;
  const int own_w = static_cast<int>(all.across.first_of(left + column) - first_w);
  const int own_end_w = static_cast<int>(all.across.end_of(left + column, 1) - first_w);
  int own_h[kOfThread], own_end_h[kOfThread];
  for (int i = 0; i < kOfThread; ++i) {
    const int64_t h = top + row + i * kApart;
    own_h[i] = static_cast<int>(all.down.first_of(h) - first_h);
    own_end_h[i] = static_cast<int>(all.down.end_of(h, 1) - first_h);
  }
  const int rows = static_cast<int>(end_h - first_h), columns = static_cast<int>(end_w - first_w);
  // Some rows of all columns, or some columns of a row: so windows come in their order.
  const int most_wide = max(1, min(columns, kBand)), most_high = kBand / most_wide;
  for (int64_t plane = blockIdx.y; plane < all.planes(); plane += gridDim.y) {
    const T* const image = x + plane * all.plane();
    const T* const given = g + plane * all.out() + first_h * all.across.out + first_w;
    T sum[kOfThread] = {};
    for (int down = 0; down < rows; down += most_high)
      for (int across = 0; across < columns; across += most_wide) {
        const int high = min(most_high, rows - down), wide = min(most_wide, columns - across);
        __syncthreads();  // all have seen the windows before
        for (int n = threadIdx.x; n < high * wide; n += kThreads) {
          const int h = n / wide, w = n - h * wide;
          const int64_t at = all.largest(image, first_h + down + h, first_w + across + w);
          const int64_t at_h = at / all.across.size - top;
          const int64_t at_w = at - (at_h + top) * all.across.size - left;
          const bool is_here =
              at >= 0 && at_h >= 0 && at_h < kTileDown && at_w >= 0 && at_w < kTileAcross;
          found[h * most_wide + w] =
              is_here ? static_cast<short>(at_h * kTileAcross + at_w) : static_cast<short>(-1);
        }
        __syncthreads();
        for (int i = 0; i < kOfThread; ++i) {
          const int own = (row + i * kApart) * kTileAcross + column;
          for (int h = max(own_h[i], down); h < min(own_end_h[i], down + high); ++h)
            for (int w = max(own_w, across); w < min(own_end_w, across + wide); ++w)
              if (found[(h - down) * most_wide + w - across] == own)
                sum[i] += given[h * all.across.out + w];
        }
      }
    for (int i = 0; i < kOfThread; ++i) {
      const int64_t h = top + row + i * kApart, w = left + column;
      if (h < all.down.size && w < all.across.size)
        out[plane * all.plane() + h * all.across.size + w] = sum[i];
    }
  }
}

template <class T>
int max_pool_taken(T* out, const T* x, const T* y, const int64_t* n, cudaStream_t on) {
  const Windows all(n);
  return each(out, all.planes() * all.out(), Largest2d<T>{x, y, all}, on);
}

template <class T>
int max_pool_value(T* out, const T* x, const int64_t* n, cudaStream_t on) {
  return max_pool_taken(out, x, x, n, on);
}

template <class T>
int max_pool_taken_last(T* out, const T* x, const T* y, const int64_t* n, cudaStream_t on) {
  const Windows all(n);
  const LargestLast<T> value = {x, y, all};
  return each(out, all.planes() * all.out(), value, on, all.planes() * all.plane());
}

template <class T>
int max_pool_value_last(T* out, const T* x, const int64_t* n, cudaStream_t on) {
  return max_pool_taken_last(out, x, x, n, on);
}

template <class T>
int max_pool_placed_last(T* out, const T* x, const T* g, const T* y, const int64_t* n,
                         cudaStream_t on) {
  const Windows all(n);
  const PlacedLast<T> value = {x, g, y, all};
  return each(out, all.planes() * all.plane(), value, on, all.planes() * all.out());
}

template <class T>
int max_pool_placed(T* out, const T* x, const T* g, const int64_t* n, cudaStream_t on) {
  const Windows all(n);
  if (all.planes() * all.plane() == 0) return 0;
  const int64_t tiles = (all.down.size + kTileDown - 1) / kTileDown *
                        ((all.across.size + kTileAcross - 1) / kTileAcross);
  const int64_t images = blocks_for(all.planes() * kThreads * tiles) / tiles;  // at one time
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(images < 1 ? 1 : images));
  place_kernel<<<grid, kThreads, 0, on>>>(out, x, g, all);
  return launched();
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
    const Pixel<Index> own(at, all.down.size, all.across.size);
    const Index image = own.plane / static_cast<Index>(all.channels);
    const Index c = own.plane - image * static_cast<Index>(all.channels);
    const Index group = c / static_cast<Index>(all.depth());
    const Index in_group = c - group * static_cast<Index>(all.depth());
    const T* const grad = g + (image * all.filters + group * all.height()) * all.out();
    const T* weight = w + (group * all.height() * all.depth() + in_group) * all.kernel();
    if constexpr (unrolled) {
      int places[kTaps];
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        const int64_t oh = all.down.window_of(own.h, tap / kSide);
        const int64_t ow = all.across.window_of(own.w, tap % kSide);
        places[tap] = oh >= 0 && ow >= 0 ? static_cast<int>(oh * all.across.out + ow) : -1;
      }
      return sum_of_taps(weight, all.filter(), grad, all.out(), places, all.height());
    }
    T sum = 0;
    for (int64_t i = 0; i < all.down.kernel; ++i) {
      const int64_t oh = all.down.window_of(own.h, i);
      for (int64_t j = 0; j < all.across.kernel; ++j, ++weight) {
        const int64_t ow = all.across.window_of(own.w, j);
        if (oh < 0 || ow < 0) continue;
        const T* const window = grad + oh * all.across.out + ow;
#pragma unroll 4
        for (int64_t f = 0; f < all.height(); ++f)
          sum += weight[f * all.filter()] * window[f * all.out()];
      }
    }
    return sum;
  }
};

/*! \brief Threads that add up one element of a gradient of w, or all of a kernel. */
const int kTeam = 512, kLargeTeam = 1024;

/*! \brief Adds up what the block's threads have, into the first place of each row. */
template <class T, int rows, int half>
__device__ inline void add_up_team(T (&sums)[rows][half], const T (&own)[rows]) {
  const int thread = threadIdx.x;
  if (thread >= half)
    for (int row = 0; row < rows; ++row) sums[row][thread - half] = own[row];
  __syncthreads();
  if (thread < half)
    for (int row = 0; row < rows; ++row) sums[row][thread] += own[row];
  for (int left = half / 2; left > 0; left /= 2) {
    __syncthreads();
    for (int k = thread; k < rows * left; k += 2 * half)
      sums[k / left][k % left] += sums[k / left][k % left + left];
  }
  __syncthreads();
}

/*! \brief The gradient of w: sum(g[f, window] * x[c, window, i, j]) over images and windows. grid:
 * elements. */
template <class T>
__global__ __launch_bounds__(kTeam) void direct_weights_kernel(T* out, const T* x, const T* g,
                                                               Convolution all) {
  __shared__ T sums[1][kTeam / 2];
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
  add_up_team(sums, sum);
  if (threadIdx.x == 0) out[at] = sums[0][0];
}

/*!
 * \brief The same where is_unrolled: a block has all elements of a filter's channel, so each of g
 * is read once for all of them. grid: filters times channels of a group.
 */
template <class T>
__global__ __launch_bounds__(kLargeTeam) void unrolled_weights_kernel(T* out, const T* x,
                                                                      const T* g, Convolution all) {
  __shared__ T sums[kTaps][kLargeTeam / 2];
  const int64_t f = blockIdx.x / all.depth(), in_group = blockIdx.x - f * all.depth();
  const int64_t c = f / all.height() * all.depth() + in_group;
  const T *const of_g = g + f * all.out(), *const of_x = x + c * all.plane();
  const int64_t g_apart = all.filters * all.out(), x_apart = all.channels * all.plane();
  const int height = static_cast<int>(all.down.out), width = static_cast<int>(all.across.out);
  const int count = static_cast<int>(all.images) * height * width;
  const int high = static_cast<int>(all.down.size), wide = static_cast<int>(all.across.size);
  const int down = static_cast<int>(all.down.dilation);
  const int along = static_cast<int>(all.across.dilation);
  T sum[kTaps] = {};
#pragma unroll 4
  for (int k = threadIdx.x; k < count; k += kLargeTeam) {
    const int row = k / width, image = row / height, oh = row - image * height;
    const int ow = k - row * width;
    const T grad = of_g[image * g_apart + oh * width + ow];
    const T* const plane = of_x + image * x_apart;
    const int first = static_cast<int>(all.down.source(oh, 0));
    const int left = static_cast<int>(all.across.source(ow, 0));
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      const int h = first + tap / kSide * down, v = left + tap % kSide * along;
      const bool is_there = h >= 0 && h < high && v >= 0 && v < wide;
      sum[tap] = with_tap(sum[tap], grad, plane, is_there ? h * wide + v : -1);
    }
  }
  add_up_team(sums, sum);
  if (threadIdx.x < kTaps) out[blockIdx.x * kTaps + threadIdx.x] = sums[threadIdx.x][0];
}

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
  if (is_unrolled(all)) return each(out, total, DirectData<T, true>{w, g, all}, on);
  return each(out, total, DirectData<T, false>{w, g, all}, on);
}

template <class T>
int direct_weights(T* out, const T* x, const T* g, const int64_t* n, cudaStream_t on) {
  const Convolution all(n);
  const int64_t elements = all.filters * all.filter(), pairs = all.filters * all.depth();
  if (elements == 0) return 0;
  if (elements > INT_MAX) return -1;
  if (is_unrolled(all))
    unrolled_weights_kernel<T><<<static_cast<unsigned>(pairs), kLargeTeam, 0, on>>>(out, x, g, all);
  else
    direct_weights_kernel<T><<<static_cast<unsigned>(elements), kTeam, 0, on>>>(out, x, g, all);
  return launched();
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_CONVOLUTION_CUH_

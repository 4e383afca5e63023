/*!
 * \file pooling.cuh
 * \brief The GPU back end's max pooling, of images that lie dense or with their channels last.
 *
 * Each thread adds what comes to its element in one order: no atomics.
 */
#ifndef DLSYS_BACKEND_POOLING_CUH_
#define DLSYS_BACKEND_POOLING_CUH_

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "convolution.cuh"

namespace dlsys {
namespace backend {

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
  /*! \brief Calls body(tap, element) for those of a window that are there. */
  template <class Body>
  __device__ void each(Index window, Body body) const {
    Index at = window * stride - padding;
    for (Index tap = 0; tap < kernel; ++tap, at += dilation)
      if (at >= 0 && at < size) body(tap, at);
  }
};

/*! \brief Channels of a pixel, as many as one access takes; or one. */
template <class T, int many>
struct alignas(sizeof(T) * many) Channels {
  T of[many];
};

template <int many, class T>
__device__ Channels<T, many> channels_at(const T* at) {
  return *reinterpret_cast<const Channels<T, many>*>(at);
}

/*! \brief As Largest2d, where channels are last. Writes the taps of what is largest, if there is
 * room for them. */
template <class T, class Code, int many>
struct LargestLast {
  const T* x;
  const T* y;
  Code* taps;
  Windows all;

  template <class Index>
  __device__ Channels<T, many> operator()(Index at) const {
    typedef typename Computed<T>::Type Number;
    const Side<Index> down(all.down), across(all.across);
    const Index packs = static_cast<Index>(all.channels / many), pixel = at / packs;
    const Pixel<Index> own(pixel, all.down.out, all.across.out);
    const int64_t first = own.plane * all.plane() * all.channels + (at - pixel * packs) * many;
    Number most[many] = {};
    Index found[many];
    Code tap[many] = {};
    for (int u = 0; u < many; ++u) found[u] = -1;
    down.each(own.h, [&](Index i, Index h) {
      across.each(own.w, [&](Index j, Index w) {
        const Index place = h * across.size + w;
        const Channels<T, many> values = channels_at<many>(x + first + place * all.channels);
#pragma unroll
        for (int u = 0; u < many; ++u) {
          const Number value = Number(values.of[u]);
          if (found[u] >= 0 && !(value > most[u]) && value == value) continue;
          most[u] = value, found[u] = place, tap[u] = static_cast<Code>(i * across.kernel + j);
        }
      });
    });
    Channels<T, many> result;
    Channels<Code, many> own_taps;
#pragma unroll
    for (int u = 0; u < many; ++u) {
      result.of[u] = x == y ? T(most[u]) : y[first + found[u] * all.channels + u];
      own_taps.of[u] = tap[u];
    }
    if (taps != nullptr) reinterpret_cast<Channels<Code, many>*>(taps)[at] = own_taps;
    return result;
  }
};

/*! \brief What comes to an element from windows whose largest it is; channels are last. `taps` has
 * the tap of what is largest in each. */
template <class T, class Code, int many>
struct PlacedLast {
  const T* g;
  const Code* taps;
  Windows all;

  template <class Index>
  __device__ Channels<T, many> operator()(Index at) const {
    typedef typename Computed<T>::Type Number;
    const Side<Index> down(all.down), across(all.across);
    const Index packs = static_cast<Index>(all.channels / many), pixel = at / packs;
    const Pixel<Index> own(pixel, all.down.size, all.across.size);
    const int64_t first = own.plane * all.out() * all.channels + (at - pixel * packs) * many;
    Number sum[many] = {};
    for (Index h = down.first(own.h); h < down.end(own.h); ++h)
      for (Index w = across.first(own.w); w < across.end(own.w); ++w) {
        const Index i = own.h + down.padding - h * down.stride;
        const Index j = own.w + across.padding - w * across.stride;
        if (i % down.dilation != 0 || j % across.dilation != 0) continue;  // between taps
        const Index tap = i / down.dilation * across.kernel + j / across.dilation;
        const int64_t window = first + (h * across.out + w) * all.channels;
        const Channels<Code, many> found = channels_at<many>(taps + window);
        const Channels<T, many> given = channels_at<many>(g + window);
#pragma unroll
        for (int u = 0; u < many; ++u)
          if (found.of[u] == static_cast<Code>(tap)) sum[u] += Number(given.of[u]);
      }
    Channels<T, many> result;
#pragma unroll
    for (int u = 0; u < many; ++u) result.of[u] = T(sum[u]);
    return result;
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

/*! \brief Calls body(number) with how many channels a thread takes, as a constant's type. */
template <class T, class Body>
int by_channels(const Windows& all, std::initializer_list<const T*> operands, Body body) {
  const int kMany = 16 / sizeof(T);
  bool packed = all.channels % kMany == 0;
  for (const T* each : operands) packed = packed && reinterpret_cast<uintptr_t>(each) % 16 == 0;
  return packed ? body(std::integral_constant<int, kMany>())
                : body(std::integral_constant<int, 1>());
}

template <class T, class Code>
int largest_last(T* out, const T* x, const T* y, Code* taps, const int64_t* n, cudaStream_t on) {
  const Windows all(n);
  return by_channels<T>(all, {out, x, y}, [&](auto many) {
    const LargestLast<T, Code, many> value = {x, y, taps, all};
    return each(reinterpret_cast<Channels<T, many>*>(out), all.planes() * all.out() / many, value,
                on, all.planes() * all.plane());
  });
}

template <class T>
int max_pool_taken_last(T* out, const T* x, const T* y, const int64_t* n, cudaStream_t on) {
  return largest_last<T, uint8_t>(out, x, y, nullptr, n, on);
}

template <class T, class Code>
int max_pool_value_last(T* out, const T* x, Code* taps, const int64_t* n, cudaStream_t on) {
  return largest_last(out, x, x, taps, n, on);
}

template <class T>
int max_pool_value_last(T* out, const T* x, const int64_t* n, cudaStream_t on) {
  return max_pool_taken_last(out, x, x, n, on);
}

template <class T, class Code>
int max_pool_placed_last(T* out, const T* g, const Code* taps, const int64_t* n, cudaStream_t on) {
  const Windows all(n);
  return by_channels<T>(all, {out, g}, [&](auto many) {
    const PlacedLast<T, Code, many> value = {g, taps, all};
    return each(reinterpret_cast<Channels<T, many>*>(out), all.planes() * all.plane() / many, value,
                on, all.planes() * all.out());
  });
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

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_POOLING_CUH_

/*!
 * \file windows.h
 * \brief Windows that slide over images, on a CPU and on a GPU: what windows.py has as Windows.
 */
#ifndef DLSYS_BACKEND_WINDOWS_H_
#define DLSYS_BACKEND_WINDOWS_H_

#include "numbers.h"

namespace dlsys {
namespace backend {

/*! \brief One axis of images and their windows: window o has at k the element of `source`. */
struct Slide {
  int64_t size, kernel, out, stride, padding, dilation;

  DLSYS_INLINE int64_t source(int64_t o, int64_t k) const {
    return o * stride - padding + k * dilation;
  }
  DLSYS_INLINE bool has(int64_t at) const { return at >= 0 && at < size; }

  /*! \brief The first window whose element k lies in the image. */
  DLSYS_INLINE int64_t first(int64_t k) const {
    const int64_t before = padding - k * dilation;
    return before <= 0 ? 0 : (before + stride - 1) / stride;
  }
  /*! \brief The one behind the last such window; not before the first. */
  DLSYS_INLINE int64_t end(int64_t k) const {
    const int64_t room = size - 1 + padding - k * dilation;
    const int64_t found = room < 0 ? 0 : room / stride + 1, least = first(k);
    return found < least ? least : found > out ? (out < least ? least : out) : found;
  }
  /*! \brief The first window that can have one of `count` elements from `at` on, and the one behind
   * the last. */
  DLSYS_INLINE int64_t first_of(int64_t at) const {
    const int64_t before = at + padding - (kernel - 1) * dilation;
    return before <= 0 ? 0 : (before + stride - 1) / stride;
  }
  DLSYS_INLINE int64_t end_of(int64_t at, int64_t count) const {
    const int64_t end = (at + count - 1 + padding) / stride + 1;
    return end < out ? end : out;
  }

  /*! \brief The window whose element k is that of the image at `at`; -1 if there is none. */
  DLSYS_INLINE int64_t window_of(int64_t at, int64_t k) const {
    const int64_t moved = at + padding - k * dilation;
    if (stride == 1) return moved >= 0 && moved < out ? moved : -1;
    if (moved < 0 || moved % stride != 0) return -1;
    return moved / stride < out ? moved / stride : -1;
  }
};

/*! \brief `images` of `channels` planes each, and their windows. */
struct Windows {
  int64_t images, channels;
  Slide down, across;

  /*! \brief Reads them at n, which then points behind them. */
  explicit Windows(const int64_t*& n)
      : images(n[0]),
        channels(n[1]),
        down{n[2], n[4], n[6], n[8], n[10], n[12]},
        across{n[3], n[5], n[7], n[9], n[11], n[13]} {
    n += 14;
  }

  DLSYS_INLINE int64_t planes() const { return images * channels; }
  DLSYS_INLINE int64_t plane() const { return down.size * across.size; }
  DLSYS_INLINE int64_t kernel() const { return down.kernel * across.kernel; }
  DLSYS_INLINE int64_t out() const { return down.out * across.out; }
  /*! \brief Whether each window is one element of the image, and the other way round. */
  bool are_elements() const {
    return kernel() == 1 && down.stride == 1 && across.stride == 1 && down.padding == 0 &&
           across.padding == 0;
  }

  /*! \brief Where in a plane the largest element of a window lies: the first, or the last NaN. */
  template <class T>
  DLSYS_INLINE int64_t largest(const T* x, int64_t oh, int64_t ow) const {
    int64_t found = -1;
    for (int64_t i = 0; i < down.kernel; ++i) {
      const int64_t h = down.source(oh, i);
      if (!down.has(h)) continue;
      for (int64_t j = 0; j < across.kernel; ++j) {
        const int64_t w = across.source(ow, j), at = h * across.size + w;
        if (!across.has(w)) continue;
        if (found < 0 || x[at] > x[found] || x[at] != x[at]) found = at;
      }
    }
    return found;
  }
};

/*! \brief A convolution: windows of all channels, `filters`, and groups of both. */
struct Convolution : Windows {
  int64_t filters, groups;

  explicit Convolution(const int64_t*& n) : Windows(n), filters(n[0]), groups(n[1]) { n += 2; }

  /*! \brief Channels and filters of one group, and elements of a filter. */
  DLSYS_INLINE int64_t depth() const { return channels / groups; }
  DLSYS_INLINE int64_t height() const { return filters / groups; }
  DLSYS_INLINE int64_t filter() const { return depth() * kernel(); }
};

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_WINDOWS_H_

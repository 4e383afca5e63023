/*!
 * \file convolution.h
 * \brief The CPU back end's convolutions and pooling.
 *
 * direct_*: loops as the formula has them. image_*: a part of an image at a time becomes columns
 * in memory of the thread, which its cache holds, and a product does the rest. shifted_*:
 * shifted.h.
 */
#ifndef DLSYS_BACKEND_CONVOLUTION_H_
#define DLSYS_BACKEND_CONVOLUTION_H_

#include "product.h"
#include "shifted.h"

namespace dlsys {
namespace backend {

/*! \brief See the instruction Fold: n is the windows and six strides. */
template <class T>
int fold(T* out, const T* columns, const int64_t* n) {
  const Windows all(n);
  const int64_t* const s = n;
  for_items(all.planes(), all.planes() * all.kernel() * all.out(), [=](int64_t plane) {
    T* const y = out + plane * all.plane();
    const T* const x = columns + plane / all.channels * s[0] + plane % all.channels * s[1];
    std::fill(y, y + all.plane(), T(0));
    for (int64_t i = 0; i < all.down.kernel; ++i)
      for (int64_t j = 0; j < all.across.kernel; ++j)
        for (int64_t oh = all.down.first(i); oh < all.down.end(i); ++oh) {
          T* const row = y + all.down.source(oh, i) * all.across.size + all.across.source(0, j);
          const T* const from = x + i * s[2] + j * s[3] + oh * s[4];
          for (int64_t ow = all.across.first(j); ow < all.across.end(j); ++ow)
            row[ow * all.across.stride] += from[ow * s[5]];
        }
  });
  return 0;
}

/*! \brief Calls body(plane, window, where its largest element lies in x), a thread for a plane. */
template <class T, class Begin, class Body>
void for_largest(const T* x, const int64_t* n, Begin begin, Body body) {
  const Windows all(n);
  for_items(all.planes(), all.planes() * all.kernel() * all.out(), [=](int64_t plane) {
    begin(plane * all.plane(), all.plane());
    for (int64_t oh = 0; oh < all.down.out; ++oh)
      for (int64_t ow = 0; ow < all.across.out; ++ow)
        body(plane * all.out() + oh * all.across.out + ow,
             plane * all.plane() + all.largest(x + plane * all.plane(), oh, ow));
  });
}

/*! \brief See the instruction MaxPool. */
template <class T>
int max_pool_taken(T* out, const T* x, const T* y, const int64_t* n) {
  const auto nothing = [](int64_t, int64_t) {};
  for_largest(x, n, nothing, [=](int64_t window, int64_t at) { out[window] = y[at]; });
  return 0;
}

template <class T>
int max_pool_value(T* out, const T* x, const int64_t* n) {
  return max_pool_taken(out, x, x, n);
}

template <class T>
int max_pool_placed(T* out, const T* x, const T* g, const int64_t* n) {
  const auto clear = [=](int64_t first, int64_t count) {
    std::fill(out + first, out + first + count, T(0));
  };
  for_largest(x, n, clear, [=](int64_t window, int64_t at) { out[at] += g[window]; });
  return 0;
}

/*! \brief Calls body(row of the output, row of the image, first, end) for each row of element i, j.
 *
 * Element ow of the first, first <= ow < end, belongs to ow * across.stride of the second.
 */
template <class Body>
void for_rows(const Windows& all, int64_t i, int64_t j, Body body) {
  const int64_t first = all.across.first(j), end = all.across.end(j);
  for (int64_t oh = all.down.first(i); oh < all.down.end(i); ++oh)
    body(oh * all.across.out, all.down.source(oh, i) * all.across.size + all.across.source(0, j),
         first, end);
}

/*! \brief out[f] = sum(w[f, c, i, j] * x[c, window, i, j]) over the channels c of f's group. */
template <class T>
int direct_value(T* out, const T* x, const T* w, const int64_t* n) {
  const Convolution all(n);
  const int64_t work = all.images * all.filters * all.out() * all.filter();
  for_items(all.images * all.filters, work, [=](int64_t item) {
    const int64_t image = item / all.filters, f = item % all.filters;
    const int64_t channel = f / all.height() * all.depth(), stride = all.across.stride;
    T* const y = out + item * all.out();
    std::fill(y, y + all.out(), T(0));
    const T* weight = w + f * all.filter();
    for (int64_t c = 0; c < all.depth(); ++c) {
      const T* const plane = x + (image * all.channels + channel + c) * all.plane();
      for (int64_t i = 0; i < all.down.kernel; ++i)
        for (int64_t j = 0; j < all.across.kernel; ++j, ++weight)
          for_rows(all, i, j, [=](int64_t to, int64_t from, int64_t first, int64_t end) {
            for (int64_t ow = first; ow < end; ++ow)
              y[to + ow] += *weight * plane[from + ow * stride];
          });
    }
  });
  return 0;
}

/*! \brief The gradient of x: each output's, times the weight by which it read the element. */
template <class T>
int direct_data(T* out, const T* w, const T* g, const int64_t* n) {
  const Convolution all(n);
  const int64_t work = all.images * all.filters * all.out() * all.filter();
  for_items(all.planes(), work, [=](int64_t item) {
    const int64_t image = item / all.channels, c = item % all.channels;
    const int64_t group = c / all.depth(), stride = all.across.stride;
    T* const y = out + item * all.plane();
    std::fill(y, y + all.plane(), T(0));
    for (int64_t f = group * all.height(); f < (group + 1) * all.height(); ++f) {
      const T* const plane = g + (image * all.filters + f) * all.out();
      const T* weight = w + (f * all.depth() + c % all.depth()) * all.kernel();
      for (int64_t i = 0; i < all.down.kernel; ++i)
        for (int64_t j = 0; j < all.across.kernel; ++j, ++weight)
          for_rows(all, i, j, [=](int64_t from, int64_t to, int64_t first, int64_t end) {
            for (int64_t ow = first; ow < end; ++ow)
              y[to + ow * stride] += *weight * plane[from + ow];
          });
    }
  });
  return 0;
}

/*! \brief The gradient of w: sum(g[f, window] * x[c, window, i, j]) over images and windows. */
template <class T>
int direct_weights(T* out, const T* x, const T* g, const int64_t* n) {
  const Convolution all(n);
  const int64_t work = all.images * all.filters * all.out() * all.filter();
  for_items(all.filters * all.depth(), work, [=](int64_t item) {
    const int64_t f = item / all.depth(), stride = all.across.stride;
    const int64_t c = f / all.height() * all.depth() + item % all.depth();
    for (int64_t i = 0; i < all.down.kernel; ++i)
      for (int64_t j = 0; j < all.across.kernel; ++j) {
        T total = 0;
        for (int64_t image = 0; image < all.images; ++image) {
          const T* const plane = x + (image * all.channels + c) * all.plane();
          const T* const grad = g + (image * all.filters + f) * all.out();
          for_rows(all, i, j, [&](int64_t at, int64_t from, int64_t first, int64_t end) {
            T sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t ow = first; ow < end; ++ow)
              sum += grad[at + ow] * plane[from + ow * stride];
            total += sum;
          });
        }
        out[item * all.kernel() + i * all.across.kernel + j] = total;
      }
  });
  return 0;
}

/*! \brief Elements of columns that a thread has at a time: they stay in its cache. */
const int64_t kColumnsAtOnce = 1 << 16;

/*! \brief Rows of windows whose columns are made at once. */
inline int64_t rows_at_once(const Convolution& all, int64_t elements) {
  const int64_t fit = elements / std::max<int64_t>(1, all.filter() * all.across.out);
  return std::max<int64_t>(1, std::min(all.down.out, fit));
}

/*!
 * \brief The columns (depth * kernel, rows * OW) of rows of windows of one group of an image.
 * \param x its first plane.
 */
template <class T>
void columns_of(const Convolution& all, const T* x, int64_t begin, int64_t rows, T* columns) {
  const int64_t wide = all.across.out, stride = all.across.stride;
  for (int64_t c = 0; c < all.depth(); ++c)
    for (int64_t i = 0; i < all.down.kernel; ++i)
      for (int64_t j = 0; j < all.across.kernel; ++j) {
        const int64_t first = all.across.first(j), end = all.across.end(j);
        for (int64_t oh = begin; oh < begin + rows; ++oh, columns += wide) {
          const int64_t h = all.down.source(oh, i);
          if (!all.down.has(h)) {
            std::fill(columns, columns + wide, T(0));
            continue;
          }
          const T* const row = x + c * all.plane() + h * all.across.size + all.across.source(0, j);
          for (int64_t ow = 0; ow < first; ++ow) columns[ow] = 0;
          if (stride == 1)
            for (int64_t ow = first; ow < end; ++ow) columns[ow] = row[ow];
          else
            for (int64_t ow = first; ow < end; ++ow) columns[ow] = row[ow * stride];
          for (int64_t ow = end; ow < wide; ++ow) columns[ow] = 0;
        }
      }
}

/*! \brief Adds such columns to where they came from. */
template <class T>
void add_columns(const Convolution& all, T* x, int64_t begin, int64_t rows, const T* columns) {
  const int64_t wide = all.across.out, stride = all.across.stride;
  for (int64_t c = 0; c < all.depth(); ++c)
    for (int64_t i = 0; i < all.down.kernel; ++i)
      for (int64_t j = 0; j < all.across.kernel; ++j)
        for (int64_t oh = begin; oh < begin + rows; ++oh, columns += wide) {
          const int64_t h = all.down.source(oh, i);
          if (!all.down.has(h)) continue;
          T* const row = x + c * all.plane() + h * all.across.size + all.across.source(0, j);
          const int64_t end = all.across.end(j);
          if (stride == 1)
            for (int64_t ow = all.across.first(j); ow < end; ++ow) row[ow] += columns[ow];
          else
            for (int64_t ow = all.across.first(j); ow < end; ++ow) row[ow * stride] += columns[ow];
        }
}

/*! \brief What a thread has of a convolution: a group of an image, and rows of its windows. */
template <class T>
int image_value(T* out, const T* x, const T* w, const int64_t* n) {
  one_thread_each();
  const Convolution all(n);
  const int64_t work = all.images * all.filters * all.out() * all.filter();
  const bool is_plain = all.are_elements();
  const int64_t rows = is_plain ? all.down.out : rows_at_once(all, kColumnsAtOnce);
  const int64_t parts = (all.down.out + rows - 1) / rows, items = all.images * all.groups * parts;
  for_items(items, work, [=](int64_t item) {
    const int64_t image = item / parts / all.groups, group = item / parts % all.groups;
    const int64_t begin = item % parts * rows, count = std::min(rows, all.down.out - begin);
    const int64_t width = count * all.across.out;
    const T* const from = x + (image * all.channels + group * all.depth()) * all.plane();
    T* const made = is_plain ? nullptr : scratch<T, 0>(all.filter() * rows * all.across.out);
    if (!is_plain) columns_of(all, from, begin, count, made);
    const Matrix<const T> columns = {is_plain ? from : made, width, 1};
    const Matrix<const T> weights = {w + group * all.height() * all.filter(), all.filter(), 1};
    T* const y = out + (image * all.filters + group * all.height()) * all.out();
    multiply(Matrix<T>{y + begin * all.across.out, all.out(), 1}, weights, columns, all.height(),
             width, all.filter());
  });
  return 0;
}

template <class T>
int image_data(T* out, const T* w, const T* g, const int64_t* n) {
  one_thread_each();
  const Convolution all(n);
  const int64_t work = all.images * all.filters * all.out() * all.filter();
  const bool is_plain = all.are_elements();
  const int64_t rows = is_plain ? all.down.out : rows_at_once(all, kColumnsAtOnce);
  for_items(all.images * all.groups, work, [=](int64_t item) {
    const int64_t image = item / all.groups, group = item % all.groups;
    T* const y = out + (image * all.channels + group * all.depth()) * all.plane();
    const T* const grads = g + (image * all.filters + group * all.height()) * all.out();
    const Matrix<const T> turned = {w + group * all.height() * all.filter(), 1, all.filter()};
    if (!is_plain) std::fill(y, y + all.depth() * all.plane(), T(0));
    for (int64_t begin = 0; begin < all.down.out; begin += rows) {
      const int64_t count = std::min(rows, all.down.out - begin), width = count * all.across.out;
      T* const made = is_plain ? y : scratch<T, 0>(all.filter() * rows * all.across.out);
      const Matrix<const T> part = {grads + begin * all.across.out, all.out(), 1};
      multiply(Matrix<T>{made, width, 1}, turned, part, all.filter(), width, all.height());
      if (!is_plain) add_columns(all, y, begin, count, made);
    }
  });
  return 0;
}

/*! \brief Elements that the sums of parts of the images take at most, together. */
const int64_t kSumsAtOnce = 1 << 22;

/*! \brief The gradient of w as the sum over parts of the images, which are added in their order.
 *
 * sums(parts, where) writes (parts, size). How many there are does not depend on the threads.
 */
template <class T, class Sums>
int weights_of_parts(T* out, const Convolution& all, Sums sums) {
  const int64_t size = all.filters * all.filter();
  if (size == 0) return 0;
  const int64_t most = std::max<int64_t>(4, std::min<int64_t>(16, kSumsAtOnce / size));
  const int64_t parts = std::max<int64_t>(1, std::min(all.images, most));
  T* const made = scratch<T, 2>(parts * size);
  sums(parts, made);
  for_items((size + kColumns - 1) / kColumns, size * parts, [=](int64_t tile) {
    const int64_t end = std::min(size, (tile + 1) * kColumns);
    for (int64_t i = tile * kColumns; i < end; ++i) out[i] = made[i];
    for (int64_t part = 1; part < parts; ++part)
#pragma omp simd
      for (int64_t i = tile * kColumns; i < end; ++i) out[i] += made[part * size + i];
  });
  return 0;
}

/*! \brief The sum over some images of one group, by their columns. */
template <class T>
void image_sum(const Convolution& all, const T* x, const T* g, int64_t first, int64_t end,
               int64_t group, T* sum) {
  const bool is_plain = all.are_elements();
  const int64_t rows = is_plain ? all.down.out : rows_at_once(all, kColumnsAtOnce);
  T* const made = is_plain ? nullptr : scratch<T, 0>(all.filter() * rows * all.across.out);
  std::fill(sum, sum + all.height() * all.filter(), T(0));
  for (int64_t image = first; image < end; ++image) {
    const T* const from = x + (image * all.channels + group * all.depth()) * all.plane();
    const T* const grads = g + (image * all.filters + group * all.height()) * all.out();
    for (int64_t begin = 0; begin < all.down.out; begin += rows) {
      const int64_t count = std::min(rows, all.down.out - begin), width = count * all.across.out;
      if (!is_plain) columns_of(all, from, begin, count, made);
      const Matrix<const T> turned = {is_plain ? from : made, 1, width};
      multiply(Matrix<T>{sum, all.filter(), 1},
               Matrix<const T>{grads + begin * all.across.out, all.out(), 1}, turned, all.height(),
               all.filter(), width, T(1));
    }
  }
}

template <class T>
int image_weights(T* out, const T* x, const T* g, const int64_t* n) {
  one_thread_each();
  const Convolution all(n);
  const int64_t size = all.filters * all.filter();
  return weights_of_parts(out, all, [&](int64_t parts, T* sums) {
    for_items(parts * all.groups, all.images * all.out() * size, [&](int64_t item) {
      const int64_t part = item / all.groups, group = item % all.groups;
      image_sum(all, x, g, all.images * part / parts, all.images * (part + 1) / parts, group,
                sums + part * size + group * all.height() * all.filter());
    });
  });
}

template <class T>
int shifted_weights(T* out, const T* x, const T* g, const int64_t* n) {
  const Shifted<T> by{Convolution(n)};
  return weights_of_parts(out, by.all,
                          [&](int64_t parts, T* sums) { shifted_sums(by, x, g, parts, sums); });
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_CONVOLUTION_H_

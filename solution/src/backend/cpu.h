/*!
 * \file cpu.h
 * \brief The CPU back end's kernels that are not made of an expression: rows, products, indices.
 *
 * Each returns 0, or -1 where an index is out of range.
 */
#ifndef DLSYS_BACKEND_CPU_H_
#define DLSYS_BACKEND_CPU_H_

#include "loops.h"

namespace dlsys {
namespace backend {

/*! \brief The Way of value(0), value(1), ... value(count - 1). */
template <class Way, class T, class Value>
T reduced(int64_t count, Value value) {
  Lanes<Way, T> lanes;
  lanes.add(count, value);
  return lanes.total();
}

template <class T>
T largest(const T* x, int64_t columns) {
  return reduced<Largest<T>, T>(columns, [=](int64_t i) { return x[i]; });
}

/*! \brief log(sum(exp(x))). The largest exponent is 0, so that nothing overflows. */
template <class T>
T logsumexp_of(const T* x, int64_t columns) {
  const T most = largest(x, columns);
  const T shift = most - most == 0 ? most : T(0);  // 0 for one that is not finite
  return log(reduced<Sum<T>, T>(columns, [=](int64_t i) { return exp(x[i] - shift); })) + shift;
}

template <class T>
int softmax(T* out, const T* in, int64_t rows, int64_t columns) {
  for_items(rows, rows * columns, [=](int64_t row) {
    const T* const x = in + row * columns;
    T* const y = out + row * columns;
    const T most = largest(x, columns);
    const T scale = 1 / reduced<Sum<T>, T>(columns, [=](int64_t i) {
                      const T exponential = exp(x[i] - most);
                      y[i] = exponential;
                      return exponential;
                    });
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[i] *= scale;
  });
  return 0;
}

template <class T>
int log_softmax(T* out, const T* in, int64_t rows, int64_t columns) {
  for_items(rows, rows * columns, [=](int64_t row) {
    const T* const x = in + row * columns;
    T* const y = out + row * columns;
    const T most = largest(x, columns);
    const T total = log(reduced<Sum<T>, T>(columns, [=](int64_t i) { return exp(x[i] - most); }));
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[i] = x[i] - most - total;
  });
  return 0;
}

template <class T>
int logsumexp(T* out, const T* in, int64_t rows, int64_t columns) {
  for_items(rows, rows * columns,
            [=](int64_t row) { out[row] = logsumexp_of(in + row * columns, columns); });
  return 0;
}

/*! \brief -sum(targets * log_softmax(logits)) of each row. */
template <class T>
int cross_entropy(T* out, const T* logits, const T* targets, int64_t rows, int64_t columns) {
  for_items(rows, rows * columns, [=](int64_t row) {
    const T* const x = logits + row * columns;
    const T* const t = targets + row * columns;
    const T most = largest(x, columns);
    const T total = log(reduced<Sum<T>, T>(columns, [=](int64_t i) { return exp(x[i] - most); }));
    out[row] =
        -reduced<Sum<T>, T>(columns, [=](int64_t i) { return t[i] * (x[i] - most - total); });
  });
  return 0;
}

/*! \brief The same of targets `rest` everywhere, and `hit` more at the class of the row. */
template <class T>
int class_entropy(T* out, const T* logits, const int64_t* classes, int64_t rows, int64_t columns,
                  double hit, double rest) {
  for_items(rows, rows * columns, [=](int64_t row) {
    const T* const x = logits + row * columns;
    const T most = largest(x, columns);
    const T total = log(reduced<Sum<T>, T>(columns, [=](int64_t i) { return exp(x[i] - most); }));
    T all = 0;
    if (rest != 0)
      all = reduced<Sum<T>, T>(columns, [=](int64_t i) { return x[i] - most - total; });
    out[row] = -static_cast<T>(hit) * (x[classes[row]] - most - total) - static_cast<T>(rest) * all;
  });
  return 0;
}

/*! \brief Where the first element stands that is `wanted`, or the first NaN. */
template <class T>
int64_t first_of(const T* x, int64_t columns, T wanted) {
  for (int64_t i = 0; i < columns; ++i)
    if (x[i] == wanted || is_nan(x[i])) return i;
  return 0;
}

template <class T>
int argmax(int64_t* out, const T* in, int64_t rows, int64_t columns) {
  for_items(rows, rows * columns, [=](int64_t row) {
    const T* const x = in + row * columns;
    out[row] = first_of(x, columns, largest(x, columns));
  });
  return 0;
}

template <class T>
int argmin(int64_t* out, const T* in, int64_t rows, int64_t columns) {
  for_items(rows, rows * columns, [=](int64_t row) {
    const T* const x = in + row * columns;
    const T least = reduced<Smallest<T>, T>(columns, [=](int64_t i) { return x[i]; });
    out[row] = first_of(x, columns, least);
  });
  return 0;
}

/*! \brief For each element, the product of the others of its row. */
template <class T>
int product_of_others(T* out, const T* in, int64_t rows, int64_t columns) {
  for_items(rows, rows * columns, [=](int64_t row) {
    const T* const x = in + row * columns;
    T* const y = out + row * columns;
    T before = 1, behind = 1;
    for (int64_t i = 0; i < columns; ++i) {
      y[i] = before;
      before *= x[i];
    }
    for (int64_t i = columns - 1; i >= 0; --i) {
      y[i] *= behind;
      behind *= x[i];
    }
  });
  return 0;
}

/*! \brief Fails unless all are among 0 .. count[0] - 1; out[0] says whether they are. */
inline int check_indices(bool* out, const int64_t* in, const int64_t* count, int64_t rows,
                         int64_t columns) {
  out[0] = true;
  for (int64_t i = 0; i < rows * columns; ++i)
    if (in[i] < 0 || in[i] >= count[0]) out[0] = false;
  return out[0] ? 0 : -1;
}

/*! \brief See the instruction Gather: n is outer, k, inner, chosen from, strides of the indices. */
template <class T>
int gather(T* out, const T* x, const int64_t* indices, const int64_t* n) {
  const int64_t outer = n[0], k = n[1], inner = n[2], from = n[3];
  for_items(outer * k, outer * k * inner, [=](int64_t row) {
    const int64_t o = row / k;
    const int64_t* const at = indices + o * n[4] + row % k * n[5];
    for (int64_t i = 0; i < inner; ++i)
      out[row * inner + i] = x[(o * from + at[i * n[6]]) * inner + i];
  });
  return 0;
}

/*! \brief Adds in the order of k, whatever the number of threads: each has columns of its own. */
template <class T>
int scatter(T* out, const T* y, const int64_t* indices, const int64_t* n) {
  const int64_t outer = n[0], k = n[1], inner = n[2], into = n[3];
  const int64_t width = std::max<int64_t>(16, inner / omp_get_max_threads());
  const int64_t parts = (inner + width - 1) / width;
  for_items(outer * parts, outer * k * inner, [=](int64_t item) {
    const int64_t o = item / parts, begin = item % parts * width;
    const int64_t end = std::min(inner, begin + width);
    for (int64_t j = 0; j < k; ++j)
      for (int64_t i = begin; i < end; ++i) {
        const int64_t to = indices[o * n[4] + j * n[5] + i * n[6]];
        T& sum = out[(o * into + to) * inner + i];
        sum = static_cast<T>(sum + y[(o * k + j) * inner + i]);
      }
  });
  return 0;
}

/*! \brief Random numbers, four from each value of the counter. n is size, seed, number of the run.
 */
template <class Kind, class T, class Stored>
int draw(Stored* out, const int64_t* n, const double* number) {
  const int64_t size = n[0];
  const T first = static_cast<T>(number[0]), second = static_cast<T>(number[1]);
  for_items((size + 3) / 4, size, [=](int64_t block) {
    const Philox philox(block, n[2], n[1]);
    for (int i = 0; i < 4; i += 2) {
      T pair[2] = {philox.uniform<T>(i), philox.uniform<T>(i + 1)};
      Kind::of(pair[0], pair[1], first, second);
      for (int j = 0; j < 2; ++j)
        if (block * 4 + i + j < size) out[block * 4 + i + j] = as<Stored>(pair[j]);
    }
  });
  return 0;
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_CPU_H_

/*!
 * \file product.h
 * \brief The CPU back end's matrix products: OpenBLAS, a part of the result for each thread.
 */
#ifndef DLSYS_BACKEND_PRODUCT_H_
#define DLSYS_BACKEND_PRODUCT_H_

#include <cblas.h>

#include "loops.h"

namespace dlsys {
namespace backend {

/*! \brief A matrix: element (i, j) lies i * row + j * column elements behind. */
template <class T>
struct Matrix {
  T* data;
  int64_t row, column;

  Matrix at(int64_t i, int64_t j) const { return {data + i * row + j * column, row, column}; }
  bool is_transposed() const { return column != 1; }
  /*! \brief The distance of its lines: rows, or columns if it is transposed. */
  int lead(int64_t rows, int64_t columns) const {
    const int64_t least = std::max<int64_t>(1, is_transposed() ? rows : columns);
    return static_cast<int>(std::max(least, is_transposed() ? column : row));
  }
};

inline void one_thread_each() {
  static const bool done = (scipy_openblas_set_num_threads(1), true);
  static_cast<void>(done);
}

/*! \brief c = a b + kept * c. */
inline void multiply(Matrix<float> c, Matrix<const float> a, Matrix<const float> b, int64_t m,
                     int64_t n, int64_t k, float kept = 0) {
  scipy_cblas_sgemm(CblasRowMajor, a.is_transposed() ? CblasTrans : CblasNoTrans,
                    b.is_transposed() ? CblasTrans : CblasNoTrans, static_cast<int>(m),
                    static_cast<int>(n), static_cast<int>(k), 1, a.data, a.lead(m, k), b.data,
                    b.lead(k, n), kept, c.data, static_cast<int>(c.row));
}

inline void multiply(Matrix<double> c, Matrix<const double> a, Matrix<const double> b, int64_t m,
                     int64_t n, int64_t k, double kept = 0) {
  scipy_cblas_dgemm(CblasRowMajor, a.is_transposed() ? CblasTrans : CblasNoTrans,
                    b.is_transposed() ? CblasTrans : CblasNoTrans, static_cast<int>(m),
                    static_cast<int>(n), static_cast<int>(k), 1, a.data, a.lead(m, k), b.data,
                    b.lead(k, n), kept, c.data, static_cast<int>(c.row));
}

/*! \brief Of whole numbers. */
template <class T>
void multiply(Matrix<T> c, Matrix<const T> a, Matrix<const T> b, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T total = 0;
      for (int64_t l = 0; l < k; ++l)
        total = static_cast<T>(total + *a.at(i, l).data * *b.at(l, j).data);
      *c.at(i, j).data = total;
    }
}

/*! \brief Multiplications below which a second thread costs more than it does. */
const int64_t kProductsWorthAThread = 1 << 18;

/*! \brief See the instruction MatrixProduct: n is m, n, k, steps of a and b, then the batch. */
template <class T>
int product(T* out, const T* left, const T* right, const int64_t* n) {
  one_thread_each();
  const int64_t rows = n[0], columns = n[1], k = n[2];
  const int64_t* steps = n + 3;
  const int64_t* rest = n + 7;
  const Axes batch(rest, 3);
  const int64_t count = batch.size(), work = count * rows * columns * k;
  if (count * rows * columns == 0) return 0;
  const int64_t worth = std::max<int64_t>(1, work / kProductsWorthAThread);
  const int64_t threads = std::min<int64_t>(omp_get_max_threads(), worth);
  // One product is cut along its longer side, in parts of whole tiles of 16.
  const int64_t side = std::max(rows, columns), cuts = count >= threads ? 1 : threads;
  const int64_t width = (((side + cuts - 1) / cuts) + 15) / 16 * 16;
  const int64_t parts = (side + width - 1) / width;
#pragma omp parallel for schedule(static) num_threads(static_cast<int>(threads))
  for (int64_t item = 0; item < count * parts; ++item) {
    int64_t at[3] = {};
    batch.add_offsets(item / parts, batch.rank, 3, at);
    const int64_t begin = item % parts * width, size = std::min(width, side - begin);
    const Matrix<T> c = {out + at[0], columns, 1};
    const Matrix<const T> a = {left + at[1], steps[0], steps[1]};
    const Matrix<const T> b = {right + at[2], steps[2], steps[3]};
    if (rows >= columns)
      multiply(c.at(begin, 0), a.at(begin, 0), b, size, columns, k);
    else
      multiply(c.at(0, begin), a, b.at(0, begin), rows, size, k);
  }
  return 0;
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_PRODUCT_H_

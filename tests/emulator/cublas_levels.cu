// cuBLAS's functions of vectors and matrices, for float and double, against loops.
#include <cublas_v2.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "check.h"

#define OK(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

static cublasHandle_t handle() {
  static cublasHandle_t made = nullptr;
  if (made == nullptr) OK(cublasCreate(&made));
  return made;
}

// f(float(), ...) is cublasSf(handle, ...), f(double(), ...) is cublasDf(handle, ...).
#define FUNCTION(name)                     \
  template <typename... Args>              \
  static void name(float, Args... args) {  \
    OK(cublasS##name(handle(), args...));  \
  }                                        \
  template <typename... Args>              \
  static void name(double, Args... args) { \
    OK(cublasD##name(handle(), args...));  \
  }
FUNCTION(axpy)
FUNCTION(scal) FUNCTION(dot) FUNCTION(nrm2) FUNCTION(asum) FUNCTION(rot) FUNCTION(rotg)
    FUNCTION(rotm) FUNCTION(rotmg) FUNCTION(gemv) FUNCTION(gbmv) FUNCTION(ger) FUNCTION(symv)
        FUNCTION(sbmv) FUNCTION(spmv) FUNCTION(syr) FUNCTION(spr) FUNCTION(syr2) FUNCTION(spr2)
            FUNCTION(trmv) FUNCTION(trsv) FUNCTION(tbmv) FUNCTION(tbsv) FUNCTION(tpmv)
                FUNCTION(tpsv) FUNCTION(symm) FUNCTION(syrk) FUNCTION(syr2k) FUNCTION(trmm)
                    FUNCTION(trsm) FUNCTION(geam) FUNCTION(dgmm)

    // A matrix on the host: element (i, j) by a function, stored by columns.
    typedef std::function<double(int, int)> Matrix;

template <typename T>
static std::vector<T> numbers(int count, int seed) {
  std::vector<T> values(count);
  for (int i = 0; i < count; ++i) values[i] = static_cast<T>((i * 37 + seed * 101) % 23 - 11) / 8;
  return values;
}

template <typename T>
static bool close(T got, double wanted) {
  return std::fabs(got - wanted) <= (sizeof(T) == 4 ? 2e-5 : 1e-12) * (1 + std::fabs(wanted));
}

template <typename T>
static Matrix dense(const std::vector<T>& a, int ld) {
  return [a, ld](int i, int j) { return a[i + j * ld]; };
}
static Matrix symmetric(Matrix a, bool upper) {
  return [=](int i, int j) { return (i <= j) == upper || i == j ? a(i, j) : a(j, i); };
}
static Matrix triangle(Matrix a, bool upper, bool unit) {
  return [=](int i, int j) {
    if (i == j) return unit ? 1.0 : a(i, j);
    return (i < j) == upper ? a(i, j) : 0.0;
  };
}
static Matrix transposed(Matrix a, bool really = true) {
  return [=](int i, int j) { return really ? a(j, i) : a(i, j); };
}
static double product(Matrix a, Matrix b, int k, int i, int j) {
  double sum = 0;
  for (int l = 0; l < k; ++l) sum += a(i, l) * b(l, j);
  return sum;
}

// One half of a square matrix without the other, column by column.
template <typename T>
static std::vector<T> packed(const std::vector<T>& a, int n, bool upper) {
  std::vector<T> half;
  for (int j = 0; j < n; ++j)
    for (int i = upper ? 0 : j; i < (upper ? j + 1 : n); ++i) half.push_back(a[i + j * n]);
  return half;
}
// The diagonals of a matrix, `lower` of them below the main one, as BLAS stores a band.
template <typename T>
static std::vector<T> band(const std::vector<T>& a, int rows, int n, int lower, int upper) {
  std::vector<T> diagonals((lower + upper + 1) * n);
  for (int j = 0; j < n; ++j)
    for (int i = std::max(0, j - upper); i <= std::min(rows - 1, j + lower); ++i)
      diagonals[upper + i - j + j * (lower + upper + 1)] = a[i + j * rows];
  return diagonals;
}
static Matrix within(Matrix a, int lower, int upper) {
  return [=](int i, int j) { return i - j <= lower && j - i <= upper ? a(i, j) : 0.0; };
}

template <typename T>
static void vectors() {
  const int n = 33;
  std::vector<T> x = numbers<T>(3 * n, 1), y = numbers<T>(2 * n, 2);
  Device<T> dx(x), dy(y);
  T alpha = 3, result, c = T(0.6), s = T(0.8);
  axpy(T(), n, &alpha, dx.data, 3, dy.data, 2);
  for (int i = 0; i < n; ++i) CHECK(close(dy.get()[2 * i], 3.0 * x[3 * i] + y[2 * i]));
  CHECK(dy.get()[1] == y[1]);
  dy.set(y);
  double dots = 0, squares = 0, sizes = 0;
  for (int i = 0; i < n; ++i) {
    dots += x[3 * i] * y[2 * i];
    squares += x[3 * i] * x[3 * i];
    sizes += std::fabs(x[3 * i]);
  }
  dot(T(), n, dx.data, 3, dy.data, 2, &result);
  CHECK(close(result, dots));
  nrm2(T(), n, dx.data, 3, &result);
  CHECK(close(result, std::sqrt(squares)));
  asum(T(), n, dx.data, 3, &result);
  CHECK(close(result, sizes));
  rot(T(), n, dx.data, 3, dy.data, 2, &c, &s);
  CHECK(close(dx.get()[6], 0.6 * x[6] + 0.8 * y[4]) && close(dy.get()[4], 0.6 * y[4] - 0.8 * x[6]));
  T a = 3, b = 4, d1 = 2, d2 = 1, x1 = 3, y1 = 2, param[5];
  rotg(T(), &a, &b, &c, &s);
  CHECK(close(std::fabs(a), 5) && close(std::fabs(c * 3 + s * 4), 5) && close(c * 4 - s * 3, 0));
  rotmg(T(), &d1, &d2, &x1, &y1, param);
  dx.set(std::vector<T>(3 * n, 3));
  dy.set(std::vector<T>(2 * n, 2));
  rotm(T(), n, dx.data, 3, dy.data, 2, param);
  CHECK(close(dy.get()[4], 0) && close(dx.get()[3], x1));
}

CASE(vectors_of_both_types) {
  vectors<float>();
  vectors<double>();
}

CASE(the_largest_and_the_smallest_are_counted_from_1) {
  Device<float> x(std::vector<float>{-2, 5, 1, -7, 7, -1});
  Device<double> y(std::vector<double>{-2, 5, 1, -7, 7, -1});
  int max, min;
  OK(cublasIsamax(handle(), 6, x.data, 1, &max));
  OK(cublasIsamin(handle(), 6, x.data, 1, &min));
  CHECK(max == 4 && min == 3);
  OK(cublasIdamax(handle(), 3, y.data, 2, &max));
  OK(cublasIdamin(handle(), 3, y.data, 2, &min));
  CHECK(max == 3 && min == 2);
  OK(cublasIdamin(handle(), 0, y.data, 1, &min));
  CHECK(min == 0);
}

template <typename T>
static void matrices_and_vectors(bool upper, bool trans, bool unit) {
  const int n = 7, m = 5;
  const auto uplo = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const auto op = trans ? CUBLAS_OP_T : CUBLAS_OP_N;
  const auto diag = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  std::vector<T> a = numbers<T>(n * n, 3), x = numbers<T>(n, 4), y = numbers<T>(n, 5);
  for (int i = 0; i < n; ++i) a[i * n + i] = 4;  // so that equations have one solution
  Matrix A = dense(a, n), X = dense(x, n);
  Device<T> da(a), dx(x), dy(y), half(packed(a, n, upper));
  Device<T> stripes(upper ? band(a, n, n, 0, 2) : band(a, n, n, 2, 0));
  T alpha = 2, beta = -3;
  const auto is_product = [&](Matrix of) {
    for (int i = 0; i < n; ++i) CHECK(close(dy.get()[i], 2 * product(of, X, n, i, 0) - 3.0 * y[i]));
    dy.set(y);
  };
  Matrix S = symmetric(A, upper);
  symv(T(), uplo, n, &alpha, da.data, n, dx.data, 1, &beta, dy.data, 1);
  is_product(S);
  spmv(T(), uplo, n, &alpha, half.data, dx.data, 1, &beta, dy.data, 1);
  is_product(S);
  sbmv(T(), uplo, n, 2, &alpha, stripes.data, 3, dx.data, 1, &beta, dy.data, 1);
  is_product(within(S, 2, 2));
  gemv(T(), op, n, n, &alpha, da.data, n, dx.data, 1, &beta, dy.data, 1);
  is_product(transposed(A, trans));
  Device<T> banded(band(a, n, n, 1, 2));
  gbmv(T(), op, n, n, 1, 2, &alpha, banded.data, 4, dx.data, 1, &beta, dy.data, 1);
  is_product(transposed(within(A, 1, 2), trans));
  // Each solver takes back what its product did.
  const auto there_and_back = [&](Matrix of, std::function<void()> multiply,
                                  std::function<void()> solve) {
    multiply();
    for (int i = 0; i < n; ++i) CHECK(close(dx.get()[i], product(of, X, n, i, 0)));
    solve();
    for (int i = 0; i < n; ++i) CHECK(std::fabs(dx.get()[i] - x[i]) < 1e-3);
    dx.set(x);
  };
  Matrix R = transposed(triangle(A, upper, unit), trans);
  there_and_back(
      R, [&] { trmv(T(), uplo, op, diag, n, da.data, n, dx.data, 1); },
      [&] { trsv(T(), uplo, op, diag, n, da.data, n, dx.data, 1); });
  there_and_back(
      R, [&] { tpmv(T(), uplo, op, diag, n, half.data, dx.data, 1); },
      [&] { tpsv(T(), uplo, op, diag, n, half.data, dx.data, 1); });
  there_and_back(
      within(R, 2, 2), [&] { tbmv(T(), uplo, op, diag, n, 2, stripes.data, 3, dx.data, 1); },
      [&] { tbsv(T(), uplo, op, diag, n, 2, stripes.data, 3, dx.data, 1); });
  // Updates: of one half, and of all.
  const auto is_update = [&](std::function<double(int, int)> added, const Device<T>& packed_half) {
    std::vector<T> wanted = a;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i)
        if (i == j || (i < j) == upper) wanted[i + j * n] += static_cast<T>(added(i, j));
    for (int i = 0; i < n * n; ++i) CHECK(close(da.get()[i], wanted[i]));
    std::vector<T> small = packed(wanted, n, upper);
    for (size_t i = 0; i < small.size(); ++i) CHECK(close(packed_half.get()[i], small[i]));
    da.set(a);
    half.set(packed(a, n, upper));
  };
  syr(T(), uplo, n, &alpha, dx.data, 1, da.data, n);
  spr(T(), uplo, n, &alpha, dx.data, 1, half.data);
  is_update([&](int i, int j) { return 2.0 * x[i] * x[j]; }, half);
  syr2(T(), uplo, n, &alpha, dx.data, 1, dy.data, 1, da.data, n);
  spr2(T(), uplo, n, &alpha, dx.data, 1, dy.data, 1, half.data);
  is_update([&](int i, int j) { return 2.0 * (x[i] * y[j] + y[i] * x[j]); }, half);
  ger(T(), m, n, &alpha, dx.data, 1, dy.data, 1, da.data, n);
  CHECK(close(da.get()[m - 1 + 3 * n], a[m - 1 + 3 * n] + 2.0 * x[m - 1] * y[3]));
  CHECK(da.get()[m + 3 * n] == a[m + 3 * n]);
}

template <typename T>
static void symmetric_and_triangular(bool left, bool upper, bool trans, bool unit) {
  const int m = 6, n = 5, k = 4, order = left ? m : n;
  const auto side = left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
  const auto uplo = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const auto op = trans ? CUBLAS_OP_T : CUBLAS_OP_N;
  const auto diag = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  std::vector<T> a = numbers<T>(m * m, 6), b = numbers<T>(m * m, 7), c = numbers<T>(m * m, 8);
  for (int i = 0; i < m; ++i) a[i * m + i] = 4;
  Matrix A = dense(a, m), B = dense(b, m), C = dense(c, m);
  Device<T> da(a), db(b), dc(c);
  T alpha = 2, beta = -3;
  const auto is = [&](Device<T>& got, int rows, std::function<double(int, int)> wanted) {
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < rows; ++i) CHECK(close(got.get()[i + j * m], wanted(i, j)));
    CHECK(got.get()[m * n] == (&got == &dc ? c : b)[m * n]);
    dc.set(c);
    db.set(b);
  };
  const auto times = [&](Matrix of) {
    return [=](int i, int j) {
      return left ? product(of, B, order, i, j) : product(B, of, order, i, j);
    };
  };
  auto symmetrical = times(symmetric(A, upper));
  symm(T(), side, uplo, m, n, &alpha, da.data, m, db.data, m, &beta, dc.data, m);
  is(dc, m, [&](int i, int j) { return 2 * symmetrical(i, j) - 3 * C(i, j); });
  auto triangular = times(transposed(triangle(A, upper, unit), trans));
  trmm(T(), side, uplo, op, diag, m, n, &alpha, da.data, m, db.data, m, dc.data, m);
  trsm(T(), side, uplo, op, diag, m, n, &beta, da.data, m, dc.data, m);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) CHECK(std::fabs(dc.get()[i + j * m] + 6 * B(i, j)) < 1e-2);
  trmm(T(), side, uplo, op, diag, m, n, &alpha, da.data, m, db.data, m, db.data, m);
  is(db, m, [&](int i, int j) { return 2 * triangular(i, j); });
  Matrix opA = transposed(A, trans), opB = transposed(B, trans);
  const auto half = [&](std::function<double(int, int)> full) {
    return [=](int i, int j) { return i == j || (i < j) == upper ? full(i, j) : C(i, j); };
  };
  syrk(T(), uplo, op, n, k, &alpha, da.data, m, &beta, dc.data, m);
  is(dc, n,
     half([&](int i, int j) { return 2 * product(opA, transposed(opA), k, i, j) - 3 * C(i, j); }));
  syr2k(T(), uplo, op, n, k, &alpha, da.data, m, db.data, m, &beta, dc.data, m);
  is(dc, n, half([&](int i, int j) {
       return 2 * (product(opA, transposed(opB), k, i, j) +
                   product(opB, transposed(opA), k, i, j)) -
              3 * C(i, j);
     }));
  geam(T(), op, CUBLAS_OP_N, n, n, &alpha, da.data, m, &beta, db.data, m, dc.data, m);
  is(dc, n, [&](int i, int j) { return 2 * opA(i, j) - 3 * B(i, j); });
  Device<T> dx(numbers<T>(2 * m, 9));
  dgmm(T(), side, m, n, db.data, m, dx.data, 2, dc.data, m);
  is(dc, m, [&](int i, int j) { return B(i, j) * dx.get()[2 * (left ? i : j)]; });
}

CASE(matrices_and_vectors_of_both_types) {
  for (int bits = 0; bits < 8; ++bits) {
    matrices_and_vectors<float>(bits & 1, bits & 2, bits & 4);
    matrices_and_vectors<double>(bits & 1, bits & 2, bits & 4);
  }
}

CASE(symmetric_and_triangular_matrices_of_both_types) {
  for (int bits = 0; bits < 16; ++bits) {
    symmetric_and_triangular<float>(bits & 1, bits & 2, bits & 4, bits & 8);
    symmetric_and_triangular<double>(bits & 1, bits & 2, bits & 4, bits & 8);
  }
}

CASE(scalars_may_be_the_devices) {
  Device<double> x(std::vector<double>{1, 2}), y(std::vector<double>{10, 20}), two(1), result(1);
  two.set({2});
  OK(cublasSetPointerMode(handle(), CUBLAS_POINTER_MODE_DEVICE));
  OK(cublasDaxpy(handle(), 2, two.data, x.data, 1, y.data, 1));
  OK(cublasDdot(handle(), 2, x.data, 1, y.data, 1, result.data));
  double host = 1;
  CHECK(cublasDscal(handle(), 2, &host, x.data, 1) == CUBLAS_STATUS_INVALID_VALUE);
  OK(cublasSetPointerMode(handle(), CUBLAS_POINTER_MODE_HOST));
  CHECK(result.get()[0] == 1 * 12 + 2 * 24);
}

CASE(wrong_arguments_are_refused) {
  Device<float> a(16);
  float one = 1;
  const auto wrong = static_cast<cublasFillMode_t>(7);
  CHECK(cublasStrsv(handle(), wrong, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 4, a.data, 4, a.data, 1) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasSsyrk(handle(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, 4, 4, &one, a.data, 3, &one,
                    a.data, 4) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasSgemv(handle(), CUBLAS_OP_N, 4, 4, &one, a.data, 4, a.data, 0, &one, a.data, 1) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasSsymm(handle(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, 4, 5, &one, a.data, 4,
                    a.data, 4, &one, a.data, 4) == CUBLAS_STATUS_EXECUTION_FAILED);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
}

// cuBLAS, where Python cannot call it: in a program of another CPU. test_emulator.py has the rest.
#include <cublas_v2.h>

#include <cmath>
#include <cstdlib>

#include "check.h"

static cublasHandle_t handle() {
  static cublasHandle_t made = nullptr;
  if (made == nullptr) CHECK(cublasCreate(&made) == CUBLAS_STATUS_SUCCESS);
  return made;
}

template <typename T>
static std::vector<T> numbers(int count) {
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(std::rand() % 2001 - 1000) / 1000;
  return values;
}

static cublasStatus_t gemm(cublasOperation_t a, cublasOperation_t b, int m, int n, int k,
                           float alpha, const float* A, int lda, const float* B, int ldb,
                           float beta, float* C) {
  return cublasSgemm(handle(), a, b, m, n, k, &alpha, A, lda, B, ldb, &beta, C, m);
}
static cublasStatus_t gemm(cublasOperation_t a, cublasOperation_t b, int m, int n, int k,
                           double alpha, const double* A, int lda, const double* B, int ldb,
                           double beta, double* C) {
  return cublasDgemm(handle(), a, b, m, n, k, &alpha, A, lda, B, ldb, &beta, C, m);
}

// 2 op(A) op(B) - C, all stored by columns, against loops.
template <typename T>
static void compare(bool ta, bool tb, int m, int n, int k, T tolerance) {
  std::vector<T> a = numbers<T>(m * k), b = numbers<T>(k * n), c = numbers<T>(m * n);
  Device<T> da(a), db(b), dc(c);
  CHECK(gemm(ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, T(2), da.data,
             ta ? k : m, db.data, tb ? n : k, T(-1), dc.data) == CUBLAS_STATUS_SUCCESS);
  std::vector<T> got = dc.get();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double wanted = -c[j * m + i];
      for (int l = 0; l < k; ++l)
        wanted += 2.0 * a[ta ? i * k + l : l * m + i] * b[tb ? l * n + j : j * k + l];
      CHECK(std::fabs(got[j * m + i] - wanted) <= tolerance * k);
    }
}

CASE(products_are_those_of_loops) {
  const int sizes[][3] = {{1, 1, 1}, {33, 127, 65}, {70, 5, 128}};
  for (const auto& size : sizes)
    for (int ops = 0; ops < 4; ++ops) {
      compare<float>(ops & 1, ops & 2, size[0], size[1], size[2], 1e-6f);
      compare<double>(ops & 1, ops & 2, size[0], size[1], size[2], 1e-14);
    }
}

CASE(vectors_are_added_and_multiplied) {
  std::vector<float> x = numbers<float>(1025), y = numbers<float>(1025);
  Device<float> dx(x), dy(y);
  float dot = 0, two = 2;
  CHECK(cublasSdot(handle(), 1025, dx.data, 1, dy.data, 1, &dot) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSaxpy(handle(), 1025, &two, dx.data, 1, dy.data, 1) == CUBLAS_STATUS_SUCCESS);
  double wanted = 0;
  for (int i = 0; i < 1025; ++i) wanted += static_cast<double>(x[i]) * y[i];
  CHECK(std::fabs(dot - wanted) < 1e-3);
  std::vector<float> sum = dy.get();
  for (int i = 0; i < 1025; ++i) CHECK(std::fabs(sum[i] - (2 * x[i] + y[i])) < 1e-6f);
}

CASE(a_matrix_of_the_host_is_an_illegal_address) {
  std::vector<float> host(16);
  Device<float> good(host);
  CHECK(gemm(CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, 1.0f, host.data(), 4, good.data, 4, 0.0f,
             good.data) == CUBLAS_STATUS_EXECUTION_FAILED);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
}

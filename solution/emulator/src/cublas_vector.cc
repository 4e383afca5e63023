/*!
 * \file cublas_vector.cc
 * \brief cuBLAS functions of vectors, and those of matrices that are not multiplied.
 */
#include <cblas.h>

#include <algorithm>

#include "arena.h"
#include "cublas_handle.h"
#include "protection.h"

namespace emulator {
namespace {

CBLAS_TRANSPOSE blas(cublasOperation_t op) { return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans; }

// A vector as an argument: its first element, and the step to the next.
struct Vector {
  const char* name;
  const float* data;
  int step;
};

cublasStatus_t check_vector(const char* function, int n, const Vector& v) {
  EMULATOR_CHECK_OPERAND(function, v.name, v.data, vector_span(n, v.step, sizeof(float)));
  return CUBLAS_STATUS_SUCCESS;
}

// A function with one number as its result, which lies where the pointer mode says.
template <typename Result, typename Function>
cublasStatus_t reduce(cublasHandle_t handle, const char* name, int n, const Vector& x,
                      Result* result, Function function) {
  EMULATOR_CHECK_HANDLE(handle);
  if (!is_scalar(handle, result, sizeof(Result))) return CUBLAS_STATUS_INVALID_VALUE;
  cublasStatus_t status = check_vector(name, n, x);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  DeviceAccess access;
  *result = n > 0 ? function() : 0;
  EMULATOR_CHECK(host_waits_for_stream(handle->stream));  // at least with a result on the host
  return status;
}

// op(X)[i, j] of a matrix stored by columns
float at(const float* X, int ld, cublasOperation_t op, int i, int j) {
  return op == CUBLAS_OP_N ? X[i + static_cast<int64_t>(j) * ld]
                           : X[j + static_cast<int64_t>(i) * ld];
}

bool is_valid_ld(int ld, cublasOperation_t op, int m, int n) {
  return ld >= std::max(1, op == CUBLAS_OP_N ? m : n);
}

size_t span(cublasOperation_t op, int m, int n, int ld) {
  return op == CUBLAS_OP_N ? matrix_span(m, n, ld, sizeof(float))
                           : matrix_span(n, m, ld, sizeof(float));
}

}  // namespace
}  // namespace emulator

using emulator::check_vector;
using emulator::DeviceAccess;
using emulator::is_scalar;

cublasStatus_t cublasSgemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                           const float* alpha, const float* A, int lda, const float* x, int incx,
                           const float* beta, float* y, int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  if (m < 0 || n < 0 || lda < std::max(1, m) || incx == 0 || incy == 0 ||
      !is_scalar(handle, alpha, sizeof *alpha) || !is_scalar(handle, beta, sizeof *beta))
    return CUBLAS_STATUS_INVALID_VALUE;
  EMULATOR_CHECK_OPERAND("cublasSgemv", "A", A, emulator::matrix_span(m, n, lda, sizeof *A));
  bool transposed = trans != CUBLAS_OP_N;
  cublasStatus_t status = check_vector("cublasSgemv", transposed ? m : n, {"x", x, incx});
  if (status == CUBLAS_STATUS_SUCCESS)
    status = check_vector("cublasSgemv", transposed ? n : m, {"y", y, incy});
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  DeviceAccess access;
  scipy_cblas_sgemv(CblasColMajor, emulator::blas(trans), m, n, *alpha, A, lda, x, incx, *beta, y,
                    incy);
  return status;
}

cublasStatus_t cublasSgeam(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, const float* alpha,
                           const float* A, int lda, const float* beta, const float* B, int ldb,
                           float* C, int ldc) {
  EMULATOR_CHECK_HANDLE(handle);
  if (m < 0 || n < 0 || !emulator::is_valid_ld(lda, transa, m, n) ||
      !emulator::is_valid_ld(ldb, transb, m, n) || ldc < std::max(1, m) ||
      !is_scalar(handle, alpha, sizeof *alpha) || !is_scalar(handle, beta, sizeof *beta))
    return CUBLAS_STATUS_INVALID_VALUE;
  DeviceAccess access;
  const float a = *alpha, b = *beta;
  // A matrix times 0 is not read, and may be null.
  if (a != 0) EMULATOR_CHECK_OPERAND("cublasSgeam", "A", A, emulator::span(transa, m, n, lda));
  if (b != 0) EMULATOR_CHECK_OPERAND("cublasSgeam", "B", B, emulator::span(transb, m, n, ldb));
  EMULATOR_CHECK_OPERAND("cublasSgeam", "C", C, emulator::matrix_span(m, n, ldc, sizeof *C));
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i)
      C[i + static_cast<int64_t>(j) * ldc] = (a != 0 ? a * emulator::at(A, lda, transa, i, j) : 0) +
                                             (b != 0 ? b * emulator::at(B, ldb, transb, i, j) : 0);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSaxpy(cublasHandle_t handle, int n, const float* alpha, const float* x,
                           int incx, float* y, int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  if (!is_scalar(handle, alpha, sizeof *alpha)) return CUBLAS_STATUS_INVALID_VALUE;
  cublasStatus_t status = check_vector("cublasSaxpy", n, {"x", x, incx});
  if (status == CUBLAS_STATUS_SUCCESS) status = check_vector("cublasSaxpy", n, {"y", y, incy});
  if (status != CUBLAS_STATUS_SUCCESS || n <= 0) return status;
  DeviceAccess access;
  scipy_cblas_saxpy(n, *alpha, x, incx, y, incy);
  return status;
}

cublasStatus_t cublasSscal(cublasHandle_t handle, int n, const float* alpha, float* x, int incx) {
  EMULATOR_CHECK_HANDLE(handle);
  if (!is_scalar(handle, alpha, sizeof *alpha)) return CUBLAS_STATUS_INVALID_VALUE;
  cublasStatus_t status = check_vector("cublasSscal", n, {"x", x, incx});
  if (status != CUBLAS_STATUS_SUCCESS || n <= 0 || incx <= 0) return status;
  DeviceAccess access;
  scipy_cblas_sscal(n, *alpha, x, incx);
  return status;
}

cublasStatus_t cublasSdot(cublasHandle_t handle, int n, const float* x, int incx, const float* y,
                          int incy, float* result) {
  EMULATOR_CHECK_HANDLE(handle);
  cublasStatus_t status = check_vector("cublasSdot", n, {"y", y, incy});
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return emulator::reduce(handle, "cublasSdot", n, {"x", x, incx}, result,
                          [=] { return scipy_cblas_sdot(n, x, incx, y, incy); });
}

cublasStatus_t cublasSnrm2(cublasHandle_t handle, int n, const float* x, int incx, float* result) {
  return emulator::reduce(handle, "cublasSnrm2", n, {"x", x, incx}, result,
                          [=] { return scipy_cblas_snrm2(n, x, incx); });
}

cublasStatus_t cublasSasum(cublasHandle_t handle, int n, const float* x, int incx, float* result) {
  return emulator::reduce(handle, "cublasSasum", n, {"x", x, incx}, result,
                          [=] { return scipy_cblas_sasum(n, x, incx); });
}

cublasStatus_t cublasIsamax(cublasHandle_t handle, int n, const float* x, int incx, int* result) {
  return emulator::reduce(handle, "cublasIsamax", n, {"x", x, incx}, result,
                          [=] { return static_cast<int>(scipy_cblas_isamax(n, x, incx)) + 1; });
}

cublasStatus_t cublasSger(cublasHandle_t handle, int m, int n, const float* alpha, const float* x,
                          int incx, const float* y, int incy, float* A, int lda) {
  EMULATOR_CHECK_HANDLE(handle);
  if (m < 0 || n < 0 || lda < std::max(1, m) || incx == 0 || incy == 0 ||
      !is_scalar(handle, alpha, sizeof *alpha))
    return CUBLAS_STATUS_INVALID_VALUE;
  EMULATOR_CHECK_OPERAND("cublasSger", "A", A, emulator::matrix_span(m, n, lda, sizeof *A));
  cublasStatus_t status = check_vector("cublasSger", m, {"x", x, incx});
  if (status == CUBLAS_STATUS_SUCCESS) status = check_vector("cublasSger", n, {"y", y, incy});
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  DeviceAccess access;
  scipy_cblas_sger(CblasColMajor, m, n, *alpha, x, incx, y, incy, A, lda);
  return status;
}

cublasStatus_t cublasScopy(cublasHandle_t handle, int n, const float* x, int incx, float* y,
                           int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  cublasStatus_t status = check_vector("cublasScopy", n, {"x", x, incx});
  if (status == CUBLAS_STATUS_SUCCESS) status = check_vector("cublasScopy", n, {"y", y, incy});
  if (status != CUBLAS_STATUS_SUCCESS || n <= 0) return status;
  DeviceAccess access;
  scipy_cblas_scopy(n, x, incx, y, incy);
  return status;
}

cublasStatus_t cublasSswap(cublasHandle_t handle, int n, float* x, int incx, float* y, int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  cublasStatus_t status = check_vector("cublasSswap", n, {"x", x, incx});
  if (status == CUBLAS_STATUS_SUCCESS) status = check_vector("cublasSswap", n, {"y", y, incy});
  if (status != CUBLAS_STATUS_SUCCESS || n <= 0) return status;
  DeviceAccess access;
  scipy_cblas_sswap(n, x, incx, y, incy);
  return status;
}

/*!
 * \file cublas_symmetric.cc
 * \brief cuBLAS's products with symmetric, triangular and diagonal matrices, and sums of matrices.
 */
#include <cstdint>

#include "cublas_calls.h"
#include "cublas_capture.h"

namespace emulator {
namespace {

template <typename T>
bool are_scalars(cublasHandle_t handle, const T* alpha, const T* beta) {
  return is_scalar(handle, alpha, sizeof(T)) && is_scalar(handle, beta, sizeof(T));
}

// op(X)[i, j] of a matrix stored by columns
template <typename T>
T at(const T* X, int ld, cublasOperation_t op, int i, int j) {
  return op == CUBLAS_OP_N ? X[i + static_cast<int64_t>(j) * ld]
                           : X[j + static_cast<int64_t>(i) * ld];
}

template <typename T>
cublasStatus_t symm(const char* name, cublasHandle_t handle, cublasSideMode_t side,
                    cublasFillMode_t uplo, int m, int n, const T* alpha, const T* A, int lda,
                    const T* B, int ldb, const T* beta, T* C, int ldc) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(side) && is_value(uplo) && m >= 0 && n >= 0 &&
                          is_ld(lda, side == CUBLAS_SIDE_LEFT ? m : n) && is_ld(ldb, m) &&
                          is_ld(ldc, m) && are_scalars(handle, alpha, beta));
  EMULATOR_CUBLAS_WORK_ON(
      name, matrix("A", A, side == CUBLAS_SIDE_LEFT ? m : n, side == CUBLAS_SIDE_LEFT ? m : n, lda),
      matrix("B", B, m, n, ldb), matrix("C", C, m, n, ldc));
  DeviceAccess access;
  Blas<T>::symm(CblasColMajor, blas(side), blas(uplo), m, n, *alpha, A, lda, B, ldb, *beta, C, ldc);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t syrk(const char* name, cublasHandle_t handle, cublasFillMode_t uplo,
                    cublasOperation_t trans, int n, int k, const T* alpha, const T* A, int lda,
                    const T* beta, T* C, int ldc) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && is_value(trans) && n >= 0 && k >= 0 &&
                          is_ld(lda, stored_rows(trans, n, k)) && is_ld(ldc, n) &&
                          are_scalars(handle, alpha, beta));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, trans, n, k, lda), matrix("C", C, n, n, ldc));
  DeviceAccess access;
  Blas<T>::syrk(CblasColMajor, blas(uplo), blas(trans), n, k, *alpha, A, lda, *beta, C, ldc);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t syr2k(const char* name, cublasHandle_t handle, cublasFillMode_t uplo,
                     cublasOperation_t trans, int n, int k, const T* alpha, const T* A, int lda,
                     const T* B, int ldb, const T* beta, T* C, int ldc) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && is_value(trans) && n >= 0 && k >= 0 &&
                          is_ld(lda, stored_rows(trans, n, k)) &&
                          is_ld(ldb, stored_rows(trans, n, k)) && is_ld(ldc, n) &&
                          are_scalars(handle, alpha, beta));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, trans, n, k, lda), matrix("B", B, trans, n, k, ldb),
                          matrix("C", C, n, n, ldc));
  DeviceAccess access;
  Blas<T>::syr2k(CblasColMajor, blas(uplo), blas(trans), n, k, *alpha, A, lda, B, ldb, *beta, C,
                 ldc);
  return CUBLAS_STATUS_SUCCESS;
}

// BLAS works in place, so B is copied to C first.
template <typename T>
cublasStatus_t trmm(const char* name, cublasHandle_t handle, cublasSideMode_t side,
                    cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, int m,
                    int n, const T* alpha, const T* A, int lda, const T* B, int ldb, T* C,
                    int ldc) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(side) && is_value(uplo) && is_value(trans) && is_value(diag) &&
                          m >= 0 && n >= 0 && is_ld(lda, side == CUBLAS_SIDE_LEFT ? m : n) &&
                          is_ld(ldb, m) && is_ld(ldc, m) && is_scalar(handle, alpha, sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(
      name, matrix("A", A, side == CUBLAS_SIDE_LEFT ? m : n, side == CUBLAS_SIDE_LEFT ? m : n, lda),
      matrix("B", B, m, n, ldb), matrix("C", C, m, n, ldc));
  DeviceAccess access;
  for (int j = 0; j < n && C != B; ++j)
    std::copy_n(B + static_cast<int64_t>(j) * ldb, m, C + static_cast<int64_t>(j) * ldc);
  Blas<T>::trmm(CblasColMajor, blas(side), blas(uplo), blas(trans), blas(diag), m, n, *alpha, A,
                lda, C, ldc);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t trsm(const char* name, cublasHandle_t handle, cublasSideMode_t side,
                    cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, int m,
                    int n, const T* alpha, const T* A, int lda, T* B, int ldb) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(side) && is_value(uplo) && is_value(trans) && is_value(diag) &&
                          m >= 0 && n >= 0 && is_ld(lda, side == CUBLAS_SIDE_LEFT ? m : n) &&
                          is_ld(ldb, m) && is_scalar(handle, alpha, sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(
      name, matrix("A", A, side == CUBLAS_SIDE_LEFT ? m : n, side == CUBLAS_SIDE_LEFT ? m : n, lda),
      matrix("B", B, m, n, ldb));
  DeviceAccess access;
  Blas<T>::trsm(CblasColMajor, blas(side), blas(uplo), blas(trans), blas(diag), m, n, *alpha, A,
                lda, B, ldb);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t geam(const char* name, cublasHandle_t handle, cublasOperation_t transa,
                    cublasOperation_t transb, int m, int n, const T* alpha, const T* A, int lda,
                    const T* beta, const T* B, int ldb, T* C, int ldc) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(transa) && is_value(transb) && m >= 0 && n >= 0 &&
                          is_ld(lda, stored_rows(transa, m, n)) &&
                          is_ld(ldb, stored_rows(transb, m, n)) && is_ld(ldc, m) &&
                          are_scalars(handle, alpha, beta));
  DeviceAccess access;
  const T a = *alpha, b = *beta;
  // A matrix times 0 is not read, and may be null.
  if (a != 0) EMULATOR_CUBLAS_OPERANDS(name, matrix("A", A, transa, m, n, lda));
  if (b != 0) EMULATOR_CUBLAS_OPERANDS(name, matrix("B", B, transb, m, n, ldb));
  EMULATOR_CUBLAS_OPERANDS(name, matrix("C", C, m, n, ldc));
  const KernelVariables variables(is_variable(A) || is_variable(B) || is_variable(C));
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i)
      C[i + static_cast<int64_t>(j) * ldc] =
          (a != 0 ? a * at(A, lda, transa, i, j) : 0) + (b != 0 ? b * at(B, ldb, transb, i, j) : 0);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t dgmm(const char* name, cublasHandle_t handle, cublasSideMode_t side, int m, int n,
                    const T* A, int lda, const T* x, int incx, T* C, int ldc) {
  EMULATOR_CHECK_HANDLE(handle);
  const bool left = side == CUBLAS_SIDE_LEFT;
  EMULATOR_CUBLAS_REQUIRE(is_value(side) && m >= 0 && n >= 0 && is_ld(lda, m) && is_ld(ldc, m));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, m, n, lda), matrix("C", C, m, n, ldc),
                          vector("x", x, left ? m : n, incx));
  DeviceAccess access;
  // A negative step goes through x from its end.
  const int64_t first = incx < 0 ? static_cast<int64_t>(1 - (left ? m : n)) * incx : 0;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i)
      C[i + j * ldc] = A[i + j * lda] * x[first + (left ? i : j) * incx];
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace emulator

#define EMULATOR_DEFINE(T, letter)                                                              \
  cublasStatus_t cublas##letter##symm(                                                          \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n,        \
      const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C, int ldc) { \
    EMULATOR_HOST_CALL();                                                                       \
    return EMULATOR_CUBLAS(symm, "cublas" #letter "symm", side, uplo, m, n,                     \
                           emulator::number(alpha), A, lda, B, ldb, emulator::number(beta), C,  \
                           ldc);                                                                \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                           \
  cublasStatus_t cublas##letter##syrk(cublasHandle_t handle, cublasFillMode_t uplo,          \
                                      cublasOperation_t trans, int n, int k, const T* alpha, \
                                      const T* A, int lda, const T* beta, T* C, int ldc) {   \
    EMULATOR_HOST_CALL();                                                                    \
    return EMULATOR_CUBLAS(syrk, "cublas" #letter "syrk", uplo, trans, n, k,                 \
                           emulator::number(alpha), A, lda, emulator::number(beta), C, ldc); \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                              \
  cublasStatus_t cublas##letter##syr2k(                                                         \
      cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k,      \
      const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C, int ldc) { \
    EMULATOR_HOST_CALL();                                                                       \
    return EMULATOR_CUBLAS(syr2k, "cublas" #letter "syr2k", uplo, trans, n, k,                  \
                           emulator::number(alpha), A, lda, B, ldb, emulator::number(beta), C,  \
                           ldc);                                                                \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                               \
  cublasStatus_t cublas##letter##trmm(cublasHandle_t handle, cublasSideMode_t side,              \
                                      cublasFillMode_t uplo, cublasOperation_t trans,            \
                                      cublasDiagType_t diag, int m, int n, const T* alpha,       \
                                      const T* A, int lda, const T* B, int ldb, T* C, int ldc) { \
    EMULATOR_HOST_CALL();                                                                        \
    return EMULATOR_CUBLAS(trmm, "cublas" #letter "trmm", side, uplo, trans, diag, m, n,         \
                           emulator::number(alpha), A, lda, B, ldb, C, ldc);                     \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                         \
  cublasStatus_t cublas##letter##trsm(cublasHandle_t handle, cublasSideMode_t side,        \
                                      cublasFillMode_t uplo, cublasOperation_t trans,      \
                                      cublasDiagType_t diag, int m, int n, const T* alpha, \
                                      const T* A, int lda, T* B, int ldb) {                \
    EMULATOR_HOST_CALL();                                                                  \
    return EMULATOR_CUBLAS(trsm, "cublas" #letter "trsm", side, uplo, trans, diag, m, n,   \
                           emulator::number(alpha), A, lda, B, ldb);                       \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                              \
  cublasStatus_t cublas##letter##geam(                                                          \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,  \
      const T* alpha, const T* A, int lda, const T* beta, const T* B, int ldb, T* C, int ldc) { \
    EMULATOR_HOST_CALL();                                                                       \
    return EMULATOR_CUBLAS(geam, "cublas" #letter "geam", transa, transb, m, n,                 \
                           emulator::number(alpha), A, lda, emulator::number(beta), B, ldb, C,  \
                           ldc);                                                                \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                \
  cublasStatus_t cublas##letter##dgmm(cublasHandle_t handle, cublasSideMode_t side, int m, int n, \
                                      const T* A, int lda, const T* x, int incx, T* C, int ldc) { \
    EMULATOR_HOST_CALL();                                                                         \
    return EMULATOR_CUBLAS(dgmm, "cublas" #letter "dgmm", side, m, n, A, lda, x, incx, C, ldc);   \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

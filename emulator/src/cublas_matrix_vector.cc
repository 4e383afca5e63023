/*!
 * \file cublas_matrix_vector.cc
 * \brief cuBLAS's functions of a matrix and vectors.
 */
#include "cublas_calls.h"
#include "cublas_capture.h"

namespace emulator {
namespace {

// Bytes of one half of a symmetric or triangular matrix without the other.
template <typename T>
Operand packed(const char* name, const T* data, int n) {
  return {name, data, static_cast<size_t>(n) * (n + 1) / 2 * sizeof(T)};
}

template <typename T>
bool are_scalars(cublasHandle_t handle, const T* alpha, const T* beta) {
  return is_scalar(handle, alpha, sizeof(T)) && is_scalar(handle, beta, sizeof(T));
}

template <typename T>
cublasStatus_t gemv(const char* name, cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                    const T* alpha, const T* A, int lda, const T* x, int incx, const T* beta, T* y,
                    int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(trans) && m >= 0 && n >= 0 && is_ld(lda, m) && incx != 0 &&
                          incy != 0 && are_scalars(handle, alpha, beta));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, m, n, lda),
                          vector("x", x, trans == CUBLAS_OP_N ? n : m, incx),
                          vector("y", y, trans == CUBLAS_OP_N ? m : n, incy));
  DeviceAccess access;
  Blas<T>::gemv(CblasColMajor, blas(trans), m, n, *alpha, A, lda, x, incx, *beta, y, incy);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t gbmv(const char* name, cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                    int kl, int ku, const T* alpha, const T* A, int lda, const T* x, int incx,
                    const T* beta, T* y, int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(trans) && m >= 0 && n >= 0 && kl >= 0 && ku >= 0 &&
                          is_ld(lda, kl + ku + 1) && incx != 0 && incy != 0 &&
                          are_scalars(handle, alpha, beta));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, kl + ku + 1, n, lda),
                          vector("x", x, trans == CUBLAS_OP_N ? n : m, incx),
                          vector("y", y, trans == CUBLAS_OP_N ? m : n, incy));
  DeviceAccess access;
  Blas<T>::gbmv(CblasColMajor, blas(trans), m, n, kl, ku, *alpha, A, lda, x, incx, *beta, y, incy);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t ger(const char* name, cublasHandle_t handle, int m, int n, const T* alpha,
                   const T* x, int incx, const T* y, int incy, T* A, int lda) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(m >= 0 && n >= 0 && is_ld(lda, m) && incx != 0 && incy != 0 &&
                          is_scalar(handle, alpha, sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, m, n, lda), vector("x", x, m, incx),
                          vector("y", y, n, incy));
  DeviceAccess access;
  Blas<T>::ger(CblasColMajor, m, n, *alpha, x, incx, y, incy, A, lda);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t symv(const char* name, cublasHandle_t handle, cublasFillMode_t uplo, int n,
                    const T* alpha, const T* A, int lda, const T* x, int incx, const T* beta, T* y,
                    int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && n >= 0 && is_ld(lda, n) && incx != 0 && incy != 0 &&
                          are_scalars(handle, alpha, beta));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, n, n, lda), vector("x", x, n, incx),
                          vector("y", y, n, incy));
  DeviceAccess access;
  Blas<T>::symv(CblasColMajor, blas(uplo), n, *alpha, A, lda, x, incx, *beta, y, incy);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t sbmv(const char* name, cublasHandle_t handle, cublasFillMode_t uplo, int n, int k,
                    const T* alpha, const T* A, int lda, const T* x, int incx, const T* beta, T* y,
                    int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && n >= 0 && k >= 0 && is_ld(lda, k + 1) && incx != 0 &&
                          incy != 0 && are_scalars(handle, alpha, beta));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, k + 1, n, lda), vector("x", x, n, incx),
                          vector("y", y, n, incy));
  DeviceAccess access;
  Blas<T>::sbmv(CblasColMajor, blas(uplo), n, k, *alpha, A, lda, x, incx, *beta, y, incy);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t spmv(const char* name, cublasHandle_t handle, cublasFillMode_t uplo, int n,
                    const T* alpha, const T* A, const T* x, int incx, const T* beta, T* y,
                    int incy) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && n >= 0 && incx != 0 && incy != 0 &&
                          are_scalars(handle, alpha, beta));
  EMULATOR_CUBLAS_WORK_ON(name, packed("A", A, n), vector("x", x, n, incx),
                          vector("y", y, n, incy));
  DeviceAccess access;
  Blas<T>::spmv(CblasColMajor, blas(uplo), n, *alpha, A, x, incx, *beta, y, incy);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t syr(const char* name, cublasHandle_t handle, cublasFillMode_t uplo, int n,
                   const T* alpha, const T* x, int incx, T* A, int lda) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && n >= 0 && is_ld(lda, n) && incx != 0 &&
                          is_scalar(handle, alpha, sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, n, n, lda), vector("x", x, n, incx));
  DeviceAccess access;
  Blas<T>::syr(CblasColMajor, blas(uplo), n, *alpha, x, incx, A, lda);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t spr(const char* name, cublasHandle_t handle, cublasFillMode_t uplo, int n,
                   const T* alpha, const T* x, int incx, T* A) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && n >= 0 && incx != 0 &&
                          is_scalar(handle, alpha, sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(name, packed("A", A, n), vector("x", x, n, incx));
  DeviceAccess access;
  Blas<T>::spr(CblasColMajor, blas(uplo), n, *alpha, x, incx, A);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t syr2(const char* name, cublasHandle_t handle, cublasFillMode_t uplo, int n,
                    const T* alpha, const T* x, int incx, const T* y, int incy, T* A, int lda) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && n >= 0 && is_ld(lda, n) && incx != 0 && incy != 0 &&
                          is_scalar(handle, alpha, sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, n, n, lda), vector("x", x, n, incx),
                          vector("y", y, n, incy));
  DeviceAccess access;
  Blas<T>::syr2(CblasColMajor, blas(uplo), n, *alpha, x, incx, y, incy, A, lda);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t spr2(const char* name, cublasHandle_t handle, cublasFillMode_t uplo, int n,
                    const T* alpha, const T* x, int incx, const T* y, int incy, T* A) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && n >= 0 && incx != 0 && incy != 0 &&
                          is_scalar(handle, alpha, sizeof(T)));
  EMULATOR_CUBLAS_WORK_ON(name, packed("A", A, n), vector("x", x, n, incx),
                          vector("y", y, n, incy));
  DeviceAccess access;
  Blas<T>::spr2(CblasColMajor, blas(uplo), n, *alpha, x, incx, y, incy, A);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t trmv(const char* name, cublasHandle_t handle, cublasFillMode_t uplo,
                    cublasOperation_t trans, cublasDiagType_t diag, int n, const T* A, int lda,
                    T* x, int incx) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && is_value(trans) && is_value(diag) && n >= 0 &&
                          incx != 0 && is_ld(lda, n));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, n, n, lda), vector("x", x, n, incx));
  DeviceAccess access;
  Blas<T>::trmv(CblasColMajor, blas(uplo), blas(trans), blas(diag), n, A, lda, x, incx);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t trsv(const char* name, cublasHandle_t handle, cublasFillMode_t uplo,
                    cublasOperation_t trans, cublasDiagType_t diag, int n, const T* A, int lda,
                    T* x, int incx) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && is_value(trans) && is_value(diag) && n >= 0 &&
                          incx != 0 && is_ld(lda, n));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, n, n, lda), vector("x", x, n, incx));
  DeviceAccess access;
  Blas<T>::trsv(CblasColMajor, blas(uplo), blas(trans), blas(diag), n, A, lda, x, incx);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t tbmv(const char* name, cublasHandle_t handle, cublasFillMode_t uplo,
                    cublasOperation_t trans, cublasDiagType_t diag, int n, int k, const T* A,
                    int lda, T* x, int incx) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && is_value(trans) && is_value(diag) && n >= 0 &&
                          incx != 0 && k >= 0 && is_ld(lda, k + 1));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, k + 1, n, lda), vector("x", x, n, incx));
  DeviceAccess access;
  Blas<T>::tbmv(CblasColMajor, blas(uplo), blas(trans), blas(diag), n, k, A, lda, x, incx);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t tbsv(const char* name, cublasHandle_t handle, cublasFillMode_t uplo,
                    cublasOperation_t trans, cublasDiagType_t diag, int n, int k, const T* A,
                    int lda, T* x, int incx) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && is_value(trans) && is_value(diag) && n >= 0 &&
                          incx != 0 && k >= 0 && is_ld(lda, k + 1));
  EMULATOR_CUBLAS_WORK_ON(name, matrix("A", A, k + 1, n, lda), vector("x", x, n, incx));
  DeviceAccess access;
  Blas<T>::tbsv(CblasColMajor, blas(uplo), blas(trans), blas(diag), n, k, A, lda, x, incx);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t tpmv(const char* name, cublasHandle_t handle, cublasFillMode_t uplo,
                    cublasOperation_t trans, cublasDiagType_t diag, int n, const T* A, T* x,
                    int incx) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && is_value(trans) && is_value(diag) && n >= 0 &&
                          incx != 0);
  EMULATOR_CUBLAS_WORK_ON(name, packed("A", A, n), vector("x", x, n, incx));
  DeviceAccess access;
  Blas<T>::tpmv(CblasColMajor, blas(uplo), blas(trans), blas(diag), n, A, x, incx);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t tpsv(const char* name, cublasHandle_t handle, cublasFillMode_t uplo,
                    cublasOperation_t trans, cublasDiagType_t diag, int n, const T* A, T* x,
                    int incx) {
  EMULATOR_CHECK_HANDLE(handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(uplo) && is_value(trans) && is_value(diag) && n >= 0 &&
                          incx != 0);
  EMULATOR_CUBLAS_WORK_ON(name, packed("A", A, n), vector("x", x, n, incx));
  DeviceAccess access;
  Blas<T>::tpsv(CblasColMajor, blas(uplo), blas(trans), blas(diag), n, A, x, incx);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace emulator

#define EMULATOR_DEFINE(T, letter)                                                                 \
  cublasStatus_t cublas##letter##gemv(cublasHandle_t handle, cublasOperation_t trans, int m,       \
                                      int n, const T* alpha, const T* A, int lda, const T* x,      \
                                      int incx, const T* beta, T* y, int incy) {                   \
    EMULATOR_HOST_CALL();                                                                          \
    return EMULATOR_CUBLAS(gemv, "cublas" #letter "gemv", trans, m, n, emulator::number(alpha), A, \
                           lda, x, incx, emulator::number(beta), y, incy);                         \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                \
  cublasStatus_t cublas##letter##gbmv(cublasHandle_t handle, cublasOperation_t trans, int m,      \
                                      int n, int kl, int ku, const T* alpha, const T* A, int lda, \
                                      const T* x, int incx, const T* beta, T* y, int incy) {      \
    EMULATOR_HOST_CALL();                                                                         \
    return EMULATOR_CUBLAS(gbmv, "cublas" #letter "gbmv", trans, m, n, kl, ku,                    \
                           emulator::number(alpha), A, lda, x, incx, emulator::number(beta), y,   \
                           incy);                                                                 \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                 \
  cublasStatus_t cublas##letter##ger(cublasHandle_t handle, int m, int n, const T* alpha,          \
                                     const T* x, int incx, const T* y, int incy, T* A, int lda) {  \
    EMULATOR_HOST_CALL();                                                                          \
    return EMULATOR_CUBLAS(ger, "cublas" #letter "ger", m, n, emulator::number(alpha), x, incx, y, \
                           incy, A, lda);                                                          \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                               \
  cublasStatus_t cublas##letter##symv(cublasHandle_t handle, cublasFillMode_t uplo, int n,       \
                                      const T* alpha, const T* A, int lda, const T* x, int incx, \
                                      const T* beta, T* y, int incy) {                           \
    EMULATOR_HOST_CALL();                                                                        \
    return EMULATOR_CUBLAS(symv, "cublas" #letter "symv", uplo, n, emulator::number(alpha), A,   \
                           lda, x, incx, emulator::number(beta), y, incy);                       \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                \
  cublasStatus_t cublas##letter##sbmv(cublasHandle_t handle, cublasFillMode_t uplo, int n, int k, \
                                      const T* alpha, const T* A, int lda, const T* x, int incx,  \
                                      const T* beta, T* y, int incy) {                            \
    EMULATOR_HOST_CALL();                                                                         \
    return EMULATOR_CUBLAS(sbmv, "cublas" #letter "sbmv", uplo, n, k, emulator::number(alpha), A, \
                           lda, x, incx, emulator::number(beta), y, incy);                        \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                \
  cublasStatus_t cublas##letter##spmv(cublasHandle_t handle, cublasFillMode_t uplo, int n,        \
                                      const T* alpha, const T* A, const T* x, int incx,           \
                                      const T* beta, T* y, int incy) {                            \
    EMULATOR_HOST_CALL();                                                                         \
    return EMULATOR_CUBLAS(spmv, "cublas" #letter "spmv", uplo, n, emulator::number(alpha), A, x, \
                           incx, emulator::number(beta), y, incy);                                \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                 \
  cublasStatus_t cublas##letter##syr(cublasHandle_t handle, cublasFillMode_t uplo, int n,          \
                                     const T* alpha, const T* x, int incx, T* A, int lda) {        \
    EMULATOR_HOST_CALL();                                                                          \
    return EMULATOR_CUBLAS(syr, "cublas" #letter "syr", uplo, n, emulator::number(alpha), x, incx, \
                           A, lda);                                                                \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                 \
  cublasStatus_t cublas##letter##spr(cublasHandle_t handle, cublasFillMode_t uplo, int n,          \
                                     const T* alpha, const T* x, int incx, T* A) {                 \
    EMULATOR_HOST_CALL();                                                                          \
    return EMULATOR_CUBLAS(spr, "cublas" #letter "spr", uplo, n, emulator::number(alpha), x, incx, \
                           A);                                                                     \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                \
  cublasStatus_t cublas##letter##syr2(cublasHandle_t handle, cublasFillMode_t uplo, int n,        \
                                      const T* alpha, const T* x, int incx, const T* y, int incy, \
                                      T* A, int lda) {                                            \
    EMULATOR_HOST_CALL();                                                                         \
    return EMULATOR_CUBLAS(syr2, "cublas" #letter "syr2", uplo, n, emulator::number(alpha), x,    \
                           incx, y, incy, A, lda);                                                \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                \
  cublasStatus_t cublas##letter##spr2(cublasHandle_t handle, cublasFillMode_t uplo, int n,        \
                                      const T* alpha, const T* x, int incx, const T* y, int incy, \
                                      T* A) {                                                     \
    EMULATOR_HOST_CALL();                                                                         \
    return EMULATOR_CUBLAS(spr2, "cublas" #letter "spr2", uplo, n, emulator::number(alpha), x,    \
                           incx, y, incy, A);                                                     \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                \
  cublasStatus_t cublas##letter##trmv(cublasHandle_t handle, cublasFillMode_t uplo,               \
                                      cublasOperation_t trans, cublasDiagType_t diag, int n,      \
                                      const T* A, int lda, T* x, int incx) {                      \
    EMULATOR_HOST_CALL();                                                                         \
    return EMULATOR_CUBLAS(trmv, "cublas" #letter "trmv", uplo, trans, diag, n, A, lda, x, incx); \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                \
  cublasStatus_t cublas##letter##trsv(cublasHandle_t handle, cublasFillMode_t uplo,               \
                                      cublasOperation_t trans, cublasDiagType_t diag, int n,      \
                                      const T* A, int lda, T* x, int incx) {                      \
    EMULATOR_HOST_CALL();                                                                         \
    return EMULATOR_CUBLAS(trsv, "cublas" #letter "trsv", uplo, trans, diag, n, A, lda, x, incx); \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                            \
  cublasStatus_t cublas##letter##tbmv(cublasHandle_t handle, cublasFillMode_t uplo,           \
                                      cublasOperation_t trans, cublasDiagType_t diag, int n,  \
                                      int k, const T* A, int lda, T* x, int incx) {           \
    EMULATOR_HOST_CALL();                                                                     \
    return EMULATOR_CUBLAS(tbmv, "cublas" #letter "tbmv", uplo, trans, diag, n, k, A, lda, x, \
                           incx);                                                             \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                            \
  cublasStatus_t cublas##letter##tbsv(cublasHandle_t handle, cublasFillMode_t uplo,           \
                                      cublasOperation_t trans, cublasDiagType_t diag, int n,  \
                                      int k, const T* A, int lda, T* x, int incx) {           \
    EMULATOR_HOST_CALL();                                                                     \
    return EMULATOR_CUBLAS(tbsv, "cublas" #letter "tbsv", uplo, trans, diag, n, k, A, lda, x, \
                           incx);                                                             \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                           \
  cublasStatus_t cublas##letter##tpmv(cublasHandle_t handle, cublasFillMode_t uplo,          \
                                      cublasOperation_t trans, cublasDiagType_t diag, int n, \
                                      const T* A, T* x, int incx) {                          \
    EMULATOR_HOST_CALL();                                                                    \
    return EMULATOR_CUBLAS(tpmv, "cublas" #letter "tpmv", uplo, trans, diag, n, A, x, incx); \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                           \
  cublasStatus_t cublas##letter##tpsv(cublasHandle_t handle, cublasFillMode_t uplo,          \
                                      cublasOperation_t trans, cublasDiagType_t diag, int n, \
                                      const T* A, T* x, int incx) {                          \
    EMULATOR_HOST_CALL();                                                                    \
    return EMULATOR_CUBLAS(tpsv, "cublas" #letter "tpsv", uplo, trans, diag, n, A, x, incx); \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

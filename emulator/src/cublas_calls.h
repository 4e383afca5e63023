/*!
 * \file cublas_calls.h
 * \brief What the functions of cuBLAS are made of: OpenBLAS by the type of the numbers, and checks.
 */
#ifndef EMULATOR_CUBLAS_CALLS_H_
#define EMULATOR_CUBLAS_CALLS_H_

#include <cblas.h>

#include <algorithm>
#include <initializer_list>

#include "cublas_handle.h"
#include "protection.h"
#include "variables.h"

namespace emulator {

/*! \brief The functions of OpenBLAS for float or double. */
template <typename T>
struct Blas;

#define EMULATOR_BLAS(T, letter)                               \
  template <>                                                  \
  struct Blas<T> {                                             \
    static constexpr auto axpy = scipy_cblas_##letter##axpy;   \
    static constexpr auto scal = scipy_cblas_##letter##scal;   \
    static constexpr auto copy = scipy_cblas_##letter##copy;   \
    static constexpr auto swap = scipy_cblas_##letter##swap;   \
    static constexpr auto dot = scipy_cblas_##letter##dot;     \
    static constexpr auto nrm2 = scipy_cblas_##letter##nrm2;   \
    static constexpr auto asum = scipy_cblas_##letter##asum;   \
    static constexpr auto rot = scipy_cblas_##letter##rot;     \
    static constexpr auto rotg = scipy_cblas_##letter##rotg;   \
    static constexpr auto rotm = scipy_cblas_##letter##rotm;   \
    static constexpr auto rotmg = scipy_cblas_##letter##rotmg; \
    static constexpr auto gemv = scipy_cblas_##letter##gemv;   \
    static constexpr auto gbmv = scipy_cblas_##letter##gbmv;   \
    static constexpr auto ger = scipy_cblas_##letter##ger;     \
    static constexpr auto symv = scipy_cblas_##letter##symv;   \
    static constexpr auto sbmv = scipy_cblas_##letter##sbmv;   \
    static constexpr auto spmv = scipy_cblas_##letter##spmv;   \
    static constexpr auto syr = scipy_cblas_##letter##syr;     \
    static constexpr auto spr = scipy_cblas_##letter##spr;     \
    static constexpr auto syr2 = scipy_cblas_##letter##syr2;   \
    static constexpr auto spr2 = scipy_cblas_##letter##spr2;   \
    static constexpr auto trmv = scipy_cblas_##letter##trmv;   \
    static constexpr auto trsv = scipy_cblas_##letter##trsv;   \
    static constexpr auto tbmv = scipy_cblas_##letter##tbmv;   \
    static constexpr auto tbsv = scipy_cblas_##letter##tbsv;   \
    static constexpr auto tpmv = scipy_cblas_##letter##tpmv;   \
    static constexpr auto tpsv = scipy_cblas_##letter##tpsv;   \
    static constexpr auto gemm = scipy_cblas_##letter##gemm;   \
    static constexpr auto symm = scipy_cblas_##letter##symm;   \
    static constexpr auto syrk = scipy_cblas_##letter##syrk;   \
    static constexpr auto syr2k = scipy_cblas_##letter##syr2k; \
    static constexpr auto trmm = scipy_cblas_##letter##trmm;   \
    static constexpr auto trsm = scipy_cblas_##letter##trsm;   \
  };
EMULATOR_BLAS(float, s)
EMULATOR_BLAS(double, d)
#undef EMULATOR_BLAS

inline CBLAS_TRANSPOSE blas(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}
inline CBLAS_UPLO blas(cublasFillMode_t uplo) {
  return uplo == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper;
}
inline CBLAS_DIAG blas(cublasDiagType_t diag) {
  return diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit;
}
inline CBLAS_SIDE blas(cublasSideMode_t side) {
  return side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight;
}

// Values that a program may have made of anything.
inline bool is_value(cublasOperation_t op) {
  return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}
inline bool is_value(cublasFillMode_t uplo) {
  return uplo == CUBLAS_FILL_MODE_LOWER || uplo == CUBLAS_FILL_MODE_UPPER;
}
inline bool is_value(cublasDiagType_t diag) {
  return diag == CUBLAS_DIAG_NON_UNIT || diag == CUBLAS_DIAG_UNIT;
}
inline bool is_value(cublasSideMode_t side) {
  return side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT;
}

/*! \brief Whether a matrix of that many rows fits a leading dimension. */
inline bool is_ld(int ld, int rows) { return ld >= std::max(1, rows); }

/*! \brief Rows of a matrix as it is stored, of which op() is m x n. */
inline int stored_rows(cublasOperation_t op, int m, int n) { return op == CUBLAS_OP_N ? m : n; }

/*! \brief Memory that a function reads or writes: its name there, and bytes from first to last. */
struct Operand {
  const char* name;
  const void* ptr;
  size_t span;
};

/*! \brief Whether all of them lie in device memory; if not, an illegal address stays. */
inline cublasStatus_t check_operands(const char* function, std::initializer_list<Operand> all) {
  for (const Operand& operand : all)
    EMULATOR_CHECK_OPERAND(function, operand.name, operand.ptr, operand.span);
  return CUBLAS_STATUS_SUCCESS;
}

/*! \brief Whether one of them is a variable of the program. */
inline bool has_variable(std::initializer_list<Operand> all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Operand& operand) { return is_variable(operand.ptr); });
}

/*! \brief A number of the host or of the device. */
template <typename T>
T value_of(const T* scalar) {
  DeviceAccess access;
  return *scalar;
}

template <typename T>
Operand vector(const char* name, const T* data, int n, int step) {
  return {name, data, vector_span(n, step, sizeof(T))};
}
template <typename T>
Operand matrix(const char* name, const T* data, int rows, int columns, int ld) {
  return {name, data, matrix_span(rows, columns, ld, sizeof(T))};
}
/*! \brief A matrix of which op() is m x n. */
template <typename T>
Operand matrix(const char* name, const T* data, cublasOperation_t op, int m, int n, int ld) {
  return op == CUBLAS_OP_N ? matrix(name, data, m, n, ld) : matrix(name, data, n, m, ld);
}

}  // namespace emulator

// Returns from a function unless something holds, or all operands are in device memory.
#define EMULATOR_CUBLAS_REQUIRE(condition) \
  if (!(condition)) return CUBLAS_STATUS_INVALID_VALUE
#define EMULATOR_CUBLAS_OPERANDS(name, ...)                                \
  do {                                                                     \
    cublasStatus_t status = emulator::check_operands(name, {__VA_ARGS__}); \
    if (status != CUBLAS_STATUS_SUCCESS) return status;                    \
  } while (0)
// The same; until the function returns, variables among the operands are those of kernels.
#define EMULATOR_CUBLAS_WORK_ON(name, ...)     \
  EMULATOR_CUBLAS_OPERANDS(name, __VA_ARGS__); \
  const emulator::KernelVariables variables(emulator::has_variable({__VA_ARGS__}))

// Defines a function for float and for double: DEFINE gets the type, and the letter in the name.
#define EMULATOR_BOTH(DEFINE) \
  DEFINE(float, S)            \
  DEFINE(double, D)

#endif  // EMULATOR_CUBLAS_CALLS_H_

/*!
 * \file cublas_types.cc
 * \brief Numbers of any type, made float or double and back.
 */
#include "cublas_types.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <type_traits>

#include "checked.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "protection.h"
#include "variables.h"

namespace emulator {
namespace {

// Calls a function with a null pointer of the type's.
template <typename Function>
void with_type(cudaDataType type, Function function) {
  switch (type) {
    case CUDA_R_16F:
      return function(static_cast<__half*>(nullptr));
    case CUDA_R_16BF:
      return function(static_cast<__nv_bfloat16*>(nullptr));
    case CUDA_R_32F:
      return function(static_cast<float*>(nullptr));
    case CUDA_R_64F:
      return function(static_cast<double*>(nullptr));
    case CUDA_R_8I:
      return function(static_cast<int8_t*>(nullptr));
    case CUDA_R_32I:
      return function(static_cast<int32_t*>(nullptr));
    default:
      return;
  }
}

// Integers keep to their range.
template <typename To>
To rounded(double value) {
  if constexpr (std::is_integral<To>::value) {
    const double low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
    return static_cast<To>(std::min(std::max(std::nearbyint(value), low), high));
  } else {
    return static_cast<To>(value);
  }
}

bool is_float_type(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return true;
    default:
      return false;
  }
}

bool is_float_product(cudaDataType of, cudaDataType C) {
  switch (of) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return C == of || C == CUDA_R_32F;
    case CUDA_R_32F:
    case CUDA_R_8I:
      return C == CUDA_R_32F;
    default:
      return false;
  }
}

}  // namespace

size_t size_of(cudaDataType type) {
  size_t size = 0;
  with_type(type, [&](auto* null) { size = sizeof *null; });
  return size;
}

size_t TypedMatrix::span() const {
  if (empty()) return 0;
  return ((rows - 1) * row_step + (columns - 1) * column_step + 1) * size_of(type);
}

template <typename T>
std::vector<T> load(const TypedMatrix& m) {
  std::vector<T> values(m.rows * m.columns);
  DeviceAccess access;
  const KernelVariables variables(is_variable(m.data));
  with_type(m.type, [&](auto* null) {
    const auto* data = static_cast<const std::remove_reference_t<decltype(*null)>*>(m.data);
    for (int64_t j = 0; j < m.columns; ++j)
      for (int64_t i = 0; i < m.rows; ++i)
        values[i + j * m.rows] = static_cast<T>(data[i * m.row_step + j * m.column_step]);
  });
  return values;
}

template <typename T>
void store(const TypedMatrix& m, const std::vector<T>& values) {
  DeviceAccess access;
  const KernelVariables variables(is_variable(m.data));
  with_type(m.type, [&](auto* null) {
    typedef std::remove_reference_t<decltype(*null)> To;
    To* data = static_cast<To*>(const_cast<void*>(m.data));
    for (int64_t j = 0; j < m.columns; ++j)
      for (int64_t i = 0; i < m.rows; ++i)
        data[i * m.row_step + j * m.column_step] = rounded<To>(values[i + j * m.rows]);
  });
}

bool find_computation(cublasComputeType_t compute, cudaDataType A, cudaDataType B, cudaDataType C,
                      Computation* found) {
  if (A != B) return false;
  if (is_float_type(compute)) {
    *found = {false, CUDA_R_32F};
    return is_float_product(A, C);
  }
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      *found = {false, CUDA_R_16F};
      return A == CUDA_R_16F && C == CUDA_R_16F;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      *found = {true, CUDA_R_64F};
      return A == CUDA_R_64F && C == CUDA_R_64F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      *found = {true, CUDA_R_32I};
      return A == CUDA_R_8I && C == CUDA_R_32I;
    default:
      return false;
  }
}

double read_scalar(const void* scalar, cudaDataType type) {
  double value = 0;
  DeviceAccess access;
  with_type(type, [&](auto* null) {
    value =
        static_cast<double>(*static_cast<const std::remove_reference_t<decltype(*null)>*>(scalar));
  });
  return value;
}

// C is not read if beta is 0.
template <typename T>
std::vector<T> multiply(const TypedMatrix& A, const TypedMatrix& B, const TypedMatrix& C,
                        double alpha, double beta) {
  const std::vector<T> a = load<T>(A), b = load<T>(B);
  std::vector<T> c = beta != 0 ? load<T>(C) : std::vector<T>(C.rows * C.columns);
  const int64_t lda = std::max<int64_t>(1, A.rows), ldb = std::max<int64_t>(1, B.rows);
  multiply_tiles(Gemm<T>{CUBLAS_OP_N, CUBLAS_OP_N, C.rows, C.columns, A.columns,
                         static_cast<T>(alpha), a.data(), lda, b.data(), ldb, static_cast<T>(beta),
                         c.data(), std::max<int64_t>(1, C.rows)});
  return c;
}

template std::vector<float> load(const TypedMatrix&);
template std::vector<double> load(const TypedMatrix&);
template void store(const TypedMatrix&, const std::vector<float>&);
template void store(const TypedMatrix&, const std::vector<double>&);
template std::vector<float> multiply(const TypedMatrix&, const TypedMatrix&, const TypedMatrix&,
                                     double, double);
template std::vector<double> multiply(const TypedMatrix&, const TypedMatrix&, const TypedMatrix&,
                                      double, double);

#ifdef EMULATOR_CHECKED
namespace {

// Columns, or rows where these are what lies together.
checked::Lines lines_of(const TypedMatrix& m) {
  const size_t size = size_of(m.type);
  const bool by_rows = m.row_step > m.column_step;
  const int64_t width = by_rows ? m.columns : m.rows, apart = by_rows ? m.row_step : m.column_step;
  const int64_t count = m.empty() ? 0 : by_rows ? m.rows : m.columns;
  return {{m.data, apart * size}, width * size, static_cast<size_t>(count)};
}

}  // namespace

void tell_streams(const char* function, cudaStream_t stream,
                  std::initializer_list<TypedMatrix> read, const TypedMatrix& written) {
  std::vector<checked::Lines> lines;
  for (const TypedMatrix& each : read) lines.push_back(lines_of(each));
  checked::cublas_submitted(function, stream, lines, lines_of(written));
}
#else
void tell_streams(const char*, cudaStream_t, std::initializer_list<TypedMatrix>,
                  const TypedMatrix&) {}
#endif

cublasStatus_t not_supported(const char* function, const char* what) {
  std::fprintf(stderr, "emulated GPU: %s: %s is not supported here\n", function, what);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace emulator

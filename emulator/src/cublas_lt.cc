/*!
 * \file cublas_lt.cc
 * \brief cuBLASLt's product of matrices, with what is done to it last.
 */
#include "cublas_lt.h"

#include <cmath>
#include <cstring>

#include "cublas_calls.h"
#include "cublas_capture.h"
#include "cublas_types.h"
#include "error.h"
#include "stream.h"

namespace emulator {
namespace {

const char kName[] = "cublasLtMatmul";

struct Layouts {
  const cublasLtMatrixLayout *A, *B, *C, *D;
};

// Rows of op() of a matrix.
uint64_t rows(const cublasLtMatrixLayout& layout, int32_t op) {
  return op == CUBLAS_OP_N ? layout.rows : layout.columns;
}
uint64_t columns(const cublasLtMatrixLayout& layout, int32_t op) {
  return op == CUBLAS_OP_N ? layout.columns : layout.rows;
}

bool has_valid_ld(const cublasLtMatrixLayout& layout) {
  const uint64_t least = layout.order == CUBLASLT_ORDER_ROW ? layout.columns : layout.rows;
  return layout.ld >= static_cast<int64_t>(least);
}

bool is_known(uint32_t epilogue) {
  const uint32_t known = CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU |
                         CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_GELU;
  return epilogue != 0 && (epilogue & ~known) == 0;
}

bool has_bias(const cublasLtMatmulDesc& desc) {
  return (desc.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
}

// What of a product there is not, or null.
const char* refusal_of(const cublasLtMatmulDesc& desc, const Layouts& l, Computation* computation) {
  if (desc.refused != nullptr) return desc.refused;
  if (!is_known(desc.epilogue)) return "this epilogue";
  for (const cublasLtMatrixLayout* layout : {l.A, l.B, l.C, l.D})
    if (layout->order != CUBLASLT_ORDER_COL && layout->order != CUBLASLT_ORDER_ROW)
      return "an order but by columns or by rows";
  if (desc.pointer_mode > CUBLASLT_POINTER_MODE_DEVICE) return "a vector of alphas";
  if (desc.transc != CUBLAS_OP_N) return "a transposed C";
  if (l.C->type != l.D->type ||
      !find_computation(desc.compute, l.A->type, l.B->type, l.D->type, computation) ||
      computation->scale != desc.scale)
    return "this combination of types and of the computation's type";
  return nullptr;
}

bool are_sizes_valid(const cublasLtMatmulDesc& desc, const Layouts& l) {
  for (const cublasLtMatrixLayout* layout : {l.A, l.B, l.C, l.D})
    if (!has_valid_ld(*layout) || layout->count != l.D->count) return false;
  return columns(*l.A, desc.transa) == rows(*l.B, desc.transb) &&
         rows(*l.A, desc.transa) == l.D->rows && columns(*l.B, desc.transb) == l.D->columns &&
         l.C->rows == l.D->rows && l.C->columns == l.D->columns;
}

cublasStatus_t check(const cublasLtMatmulDesc* desc, const Layouts& l, Computation* computation) {
  if (desc == nullptr || !l.A || !l.B || !l.C || !l.D) return CUBLAS_STATUS_INVALID_VALUE;
  if (!are_sizes_valid(*desc, l)) return CUBLAS_STATUS_INVALID_VALUE;
  return refusal_of(*desc, l, computation) ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

// Number `index` of a batch.
TypedMatrix matrix_of(const void* data, const cublasLtMatrixLayout& layout, int32_t op, int index) {
  const bool by_rows = (layout.order == CUBLASLT_ORDER_ROW) != (op != CUBLAS_OP_N);
  const char* start = static_cast<const char*>(data);
  if (start != nullptr) start += index * layout.offset * static_cast<int64_t>(size_of(layout.type));
  return {start,
          layout.type,
          static_cast<int64_t>(rows(layout, op)),
          static_cast<int64_t>(columns(layout, op)),
          by_rows ? layout.ld : 1,
          by_rows ? 1 : layout.ld};
}

TypedMatrix bias_of(const cublasLtMatmulDesc& desc, const Layouts& l, int index) {
  const cudaDataType type =
      desc.bias_type < 0 ? l.D->type : static_cast<cudaDataType>(desc.bias_type);
  const char* start = static_cast<const char*>(desc.bias);
  start += index * desc.bias_offset * static_cast<int64_t>(size_of(type));
  const int64_t rows = static_cast<int64_t>(l.D->rows);
  return {start, type, rows, 1, 1, rows};
}

// The approximation by tanh, as cuBLASLt has it.
double gelu(double x) {
  return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

template <typename T>
void finish(std::vector<T>* values, int64_t rows, const std::vector<T>& bias, uint32_t epilogue) {
  for (size_t i = 0; i < values->size(); ++i) {
    T& value = (*values)[i];
    if (!bias.empty()) value += bias[i % rows];
    if (epilogue & CUBLASLT_EPILOGUE_RELU) value = value < 0 ? 0 : value;
    if (epilogue & CUBLASLT_EPILOGUE_GELU) value = static_cast<T>(gelu(value));
  }
}

struct Matmul {
  const cublasLtMatmulDesc& desc;
  const Layouts& layouts;
  const void *A, *B, *C;
  void* D;
  double alpha, beta;
  cudaStream_t stream;

  template <typename T>
  cublasStatus_t run(int index) const {
    const TypedMatrix a = matrix_of(A, *layouts.A, desc.transa, index);
    const TypedMatrix b = matrix_of(B, *layouts.B, desc.transb, index);
    const TypedMatrix c = matrix_of(C, *layouts.C, CUBLAS_OP_N, index);
    const TypedMatrix d = matrix_of(D, *layouts.D, CUBLAS_OP_N, index);
    EMULATOR_CUBLAS_OPERANDS(kName, {"A", a.data, a.span()}, {"B", b.data, b.span()},
                             {"D", d.data, d.span()});
    if (beta != 0) EMULATOR_CUBLAS_OPERANDS(kName, {"C", c.data, c.span()});
    std::vector<T> bias;
    if (has_bias(desc)) {
      const TypedMatrix given = bias_of(desc, layouts, index);
      EMULATOR_CUBLAS_OPERANDS(kName, {"bias", given.data, given.span()});
      bias = load<T>(given);
    }
    tell_streams(kName, stream, {a, b, beta != 0 ? c : d}, d);
    std::vector<T> values = multiply<T>(a, b, c, alpha, beta);
    finish(&values, d.rows, bias, desc.epilogue);
    store(d, values);
    return CUBLAS_STATUS_SUCCESS;
  }
};

// A call of cublasLtMatmul, with copies of what describes it.
struct Multiplication {
  cublasLtMatmulDesc desc;
  cublasLtMatrixLayout layoutA, layoutB, layoutC, layoutD;
  const void *A, *B, *C;
  void* D;
  bool in_double;

  cublasStatus_t run(const void* alpha, const void* beta, cudaStream_t stream) const {
    const size_t size = size_of(desc.scale);
    if (desc.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE)
      EMULATOR_CUBLAS_OPERANDS(kName, {"alpha", alpha, size}, {"beta", beta, size});
    const Layouts layouts{&layoutA, &layoutB, &layoutC, &layoutD};
    const Matmul matmul{
        desc,  layouts, A, B, C, D, read_scalar(alpha, desc.scale), read_scalar(beta, desc.scale),
        stream};
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (int i = 0; i < layoutD.count && status == CUBLAS_STATUS_SUCCESS; ++i)
      status = in_double ? matmul.run<double>(i) : matmul.run<float>(i);
    return status;
  }
};

cublasStatus_t submit_multiplication(const Multiplication& all, const void* alpha, const void* beta,
                                     cudaStream_t stream) {
  if (!is_any_capture()) return all.run(alpha, beta, stream);
  struct {
    char alpha[16], beta[16];
  } kept;
  const bool on_host = all.desc.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE;
  if (on_host) std::memcpy(kept.alpha, alpha, size_of(all.desc.scale));
  if (on_host) std::memcpy(kept.beta, beta, size_of(all.desc.scale));
  return submit_cublas(kName, nullptr, stream, [=](cublasHandle_t own) {
    const cudaStream_t mine = own == nullptr ? stream : own->stream;
    return on_host ? all.run(kept.alpha, kept.beta, mine) : all.run(alpha, beta, mine);
  });
}

bool is_any_handle(cublasLtHandle_t handle) {
  // A handle of cuBLAS may be used as well.
  return is_lt_handle(handle) ||
         check_handle(reinterpret_cast<cublasHandle_t>(handle)) != CUBLAS_STATUS_NOT_INITIALIZED;
}

}  // namespace
}  // namespace emulator

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t A, cublasLtMatrixLayout_t B,
                                              cublasLtMatrixLayout_t C, cublasLtMatrixLayout_t D,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  if (!emulator::is_any_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (wanted <= 0 || results == nullptr || found == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  emulator::Computation computation;
  const emulator::Layouts layouts{A, B, C, D};
  cublasStatus_t status = emulator::check(desc, layouts, &computation);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED)
    return emulator::not_supported("cublasLtMatmulAlgoGetHeuristic",
                                   emulator::refusal_of(*desc, layouts, &computation));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  std::memset(&results[0], 0, sizeof results[0]);
  results[0].wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t layoutA, const void* B,
                              cublasLtMatrixLayout_t layoutB, const void* beta, const void* C,
                              cublasLtMatrixLayout_t layoutC, void* D,
                              cublasLtMatrixLayout_t layoutD, const cublasLtMatmulAlgo_t*, void*,
                              size_t, cudaStream_t stream) {
  EMULATOR_HOST_CALL();
  if (!emulator::is_any_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (emulator::sticky_error() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  emulator::Computation computation;
  const emulator::Layouts layouts{layoutA, layoutB, layoutC, layoutD};
  cublasStatus_t status = emulator::check(desc, layouts, &computation);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED)
    return emulator::not_supported(emulator::kName,
                                   emulator::refusal_of(*desc, layouts, &computation));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  EMULATOR_CUBLAS_REQUIRE(emulator::is_stream(stream) && alpha != nullptr && beta != nullptr);
  EMULATOR_CUBLAS_REQUIRE(!emulator::has_bias(*desc) || desc->bias != nullptr);
  const emulator::Multiplication all{*desc, *layoutA, *layoutB, *layoutC, *layoutD,
                                     A,     B,        C,        D,        computation.in_double};
  return emulator::submit_multiplication(all, alpha, beta, stream);
}

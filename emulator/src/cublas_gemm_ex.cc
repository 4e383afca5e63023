/*!
 * \file cublas_gemm_ex.cc
 * \brief cuBLAS's products of matrices whose types are arguments.
 */
#include <cstring>

#include "cublas_calls.h"
#include "cublas_capture.h"
#include "cublas_types.h"

namespace emulator {
namespace {

// All arguments of a product but the matrices' addresses.
struct Product {
  const char* name;
  cublasHandle_t handle;
  cublasOperation_t transa, transb;
  int m, n, k;
  const void* alpha;
  cudaDataType typeA;
  int lda;
  cudaDataType typeB;
  int ldb;
  const void* beta;
  cudaDataType typeC;
  int ldc;
  cublasComputeType_t compute;
};

TypedMatrix matrix_of(const void* data, cudaDataType type, cublasOperation_t op, int rows,
                      int columns, int ld) {
  if (op == CUBLAS_OP_N) return {data, type, rows, columns, 1, ld};
  return {data, type, rows, columns, ld, 1};
}

cublasStatus_t check(const Product& p, Computation* computation) {
  EMULATOR_CHECK_HANDLE(p.handle);
  EMULATOR_CUBLAS_REQUIRE(is_value(p.transa) && is_value(p.transb) && p.m >= 0 && p.n >= 0 &&
                          p.k >= 0 && is_ld(p.lda, stored_rows(p.transa, p.m, p.k)) &&
                          is_ld(p.ldb, stored_rows(p.transb, p.k, p.n)) && is_ld(p.ldc, p.m));
  if (!find_computation(p.compute, p.typeA, p.typeB, p.typeC, computation))
    return not_supported(p.name, "this combination of types and of the computation's type");
  const size_t size = size_of(computation->scale);
  EMULATOR_CUBLAS_REQUIRE(is_scalar(p.handle, p.alpha, size) && is_scalar(p.handle, p.beta, size));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t run(const Product& p, const Computation& computation, const void* A, const void* B,
                   void* C) {
  if (p.m == 0 || p.n == 0) return CUBLAS_STATUS_SUCCESS;
  const TypedMatrix a = matrix_of(A, p.typeA, p.transa, p.m, p.k, p.lda);
  const TypedMatrix b = matrix_of(B, p.typeB, p.transb, p.k, p.n, p.ldb);
  const TypedMatrix c = matrix_of(C, p.typeC, CUBLAS_OP_N, p.m, p.n, p.ldc);
  EMULATOR_CUBLAS_OPERANDS(p.name, {"A", A, a.span()}, {"B", B, b.span()}, {"C", C, c.span()});
  tell_streams(p.name, p.handle->stream, {a, b}, c);
  const double alpha = read_scalar(p.alpha, computation.scale);
  const double beta = read_scalar(p.beta, computation.scale);
  if (computation.in_double)
    store(c, multiply<double>(a, b, c, alpha, beta));
  else
    store(c, multiply<float>(a, b, c, alpha, beta));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t one(const Product& p, const void* A, const void* B, void* C) {
  Computation computation;
  cublasStatus_t status = check(p, &computation);
  return status == CUBLAS_STATUS_SUCCESS ? run(p, computation, A, B, C) : status;
}

// Steps in elements.
cublasStatus_t strided(const Product& p, const void* A, long long stepA, const void* B,
                       long long stepB, void* C, long long stepC, int count) {
  Computation computation;
  cublasStatus_t status = check(p, &computation);
  if (count < 0) status = CUBLAS_STATUS_INVALID_VALUE;
  for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i)
    status = run(p, computation,
                 static_cast<const char*>(A) + i * stepA * static_cast<long long>(size_of(p.typeA)),
                 static_cast<const char*>(B) + i * stepB * static_cast<long long>(size_of(p.typeB)),
                 static_cast<char*>(C) + i * stepC * static_cast<long long>(size_of(p.typeC)));
  return status;
}

cublasStatus_t batched(const Product& p, const void* const* A, const void* const* B, void* const* C,
                       int count) {
  Computation computation;
  cublasStatus_t status = check(p, &computation);
  if (count < 0) status = CUBLAS_STATUS_INVALID_VALUE;
  if (count <= 0 || status != CUBLAS_STATUS_SUCCESS) return status;
  const size_t size = count * sizeof(void*);
  EMULATOR_CUBLAS_OPERANDS(p.name, {"array A", A, size}, {"array B", B, size},
                           {"array C", C, size});
  for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i)
    status = run(p, computation, value_of(A + i), value_of(B + i), value_of(C + i));
  return status;
}

// Does what function(p) does, now or as a node, with copies of alpha and beta.
template <typename Function>
cublasStatus_t submit_product(const Product& p, const Function& function) {
  if (!is_any_capture()) return function(p);
  Computation computation;
  const cublasStatus_t status = check(p, &computation);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  struct {
    char alpha[16], beta[16];
  } kept;
  const bool on_host = p.handle->pointer_mode == CUBLAS_POINTER_MODE_HOST;
  if (on_host) std::memcpy(kept.alpha, p.alpha, size_of(computation.scale));
  if (on_host) std::memcpy(kept.beta, p.beta, size_of(computation.scale));
  return submit_cublas(p.name, p.handle, p.handle->stream, [=](cublasHandle_t own) {
    Product mine = p;
    mine.handle = own;
    if (on_host) mine.alpha = kept.alpha;
    if (on_host) mine.beta = kept.beta;
    return function(mine);
  });
}

// What CUDA 10 called the computation.
cublasComputeType_t computation_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
      return CUBLAS_COMPUTE_16F;
    case CUDA_R_64F:
      return CUBLAS_COMPUTE_64F;
    case CUDA_R_32I:
      return CUBLAS_COMPUTE_32I;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}

}  // namespace
}  // namespace emulator

using emulator::Product;

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* A, cudaDataType typeA, int lda, const void* B,
                            cudaDataType typeB, int ldb, const void* beta, void* C,
                            cudaDataType typeC, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t) {
  EMULATOR_HOST_CALL();
  const Product p{"cublasGemmEx", handle, transa, transb, m,    n,     k,   alpha,
                  typeA,          lda,    typeB,  ldb,    beta, typeC, ldc, compute};
  return emulator::submit_product(p,
                                  [=](const Product& own) { return emulator::one(own, A, B, C); });
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* A, cudaDataType typeA, int lda, const void* B,
                            cudaDataType typeB, int ldb, const void* beta, void* C,
                            cudaDataType typeC, int ldc, cudaDataType compute,
                            cublasGemmAlgo_t algorithm) {
  EMULATOR_HOST_CALL();
  return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, typeA, lda, B, typeB, ldb, beta, C,
                      typeC, ldc, emulator::computation_of(compute), algorithm);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                   cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                   const void* const A[], cudaDataType typeA, int lda,
                                   const void* const B[], cudaDataType typeB, int ldb,
                                   const void* beta, void* const C[], cudaDataType typeC, int ldc,
                                   int count, cublasComputeType_t compute, cublasGemmAlgo_t) {
  EMULATOR_HOST_CALL();
  const Product p{"cublasGemmBatchedEx",
                  handle,
                  transa,
                  transb,
                  m,
                  n,
                  k,
                  alpha,
                  typeA,
                  lda,
                  typeB,
                  ldb,
                  beta,
                  typeC,
                  ldc,
                  compute};
  return emulator::submit_product(
      p, [=](const Product& own) { return emulator::batched(own, A, B, C, count); });
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const void* alpha, const void* A, cudaDataType typeA, int lda, long long strideA, const void* B,
    cudaDataType typeB, int ldb, long long strideB, const void* beta, void* C, cudaDataType typeC,
    int ldc, long long strideC, int count, cublasComputeType_t compute, cublasGemmAlgo_t) {
  EMULATOR_HOST_CALL();
  const Product p{"cublasGemmStridedBatchedEx",
                  handle,
                  transa,
                  transb,
                  m,
                  n,
                  k,
                  alpha,
                  typeA,
                  lda,
                  typeB,
                  ldb,
                  beta,
                  typeC,
                  ldc,
                  compute};
  return emulator::submit_product(p, [=](const Product& own) {
    return emulator::strided(own, A, strideA, B, strideB, C, strideC, count);
  });
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa,
                             cublasOperation_t transb, int m, int n, int k, const float* alpha,
                             const void* A, cudaDataType typeA, int lda, const void* B,
                             cudaDataType typeB, int ldb, const float* beta, void* C,
                             cudaDataType typeC, int ldc) {
  EMULATOR_HOST_CALL();
  const Product p{"cublasSgemmEx", handle, transa, transb, m,    n,     k,   alpha,
                  typeA,           lda,    typeB,  ldb,    beta, typeC, ldc, CUBLAS_COMPUTE_32F};
  return emulator::submit_product(p,
                                  [=](const Product& own) { return emulator::one(own, A, B, C); });
}

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const __half* alpha,
                           const __half* A, int lda, const __half* B, int ldb, const __half* beta,
                           __half* C, int ldc) {
  EMULATOR_HOST_CALL();
  const Product p{
      "cublasHgemm", handle, transa,     transb, m,    n,          k,   alpha,
      CUDA_R_16F,    lda,    CUDA_R_16F, ldb,    beta, CUDA_R_16F, ldc, CUBLAS_COMPUTE_16F};
  return emulator::submit_product(p,
                                  [=](const Product& own) { return emulator::one(own, A, B, C); });
}

cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k,
                                  const __half* alpha, const __half* const A[], int lda,
                                  const __half* const B[], int ldb, const __half* beta,
                                  __half* const C[], int ldc, int count) {
  EMULATOR_HOST_CALL();
  const Product p{
      "cublasHgemmBatched", handle, transa,     transb, m,    n,          k,   alpha,
      CUDA_R_16F,           lda,    CUDA_R_16F, ldb,    beta, CUDA_R_16F, ldc, CUBLAS_COMPUTE_16F};
  return emulator::submit_product(p, [=](const Product& own) {
    return emulator::batched(own, reinterpret_cast<const void* const*>(A),
                             reinterpret_cast<const void* const*>(B),
                             reinterpret_cast<void* const*>(C), count);
  });
}

cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const __half* alpha, const __half* A, int lda,
                                         long long strideA, const __half* B, int ldb,
                                         long long strideB, const __half* beta, __half* C, int ldc,
                                         long long strideC, int count) {
  EMULATOR_HOST_CALL();
  const Product p{"cublasHgemmStridedBatched",
                  handle,
                  transa,
                  transb,
                  m,
                  n,
                  k,
                  alpha,
                  CUDA_R_16F,
                  lda,
                  CUDA_R_16F,
                  ldb,
                  beta,
                  CUDA_R_16F,
                  ldc,
                  CUBLAS_COMPUTE_16F};
  return emulator::submit_product(p, [=](const Product& own) {
    return emulator::strided(own, A, strideA, B, strideB, C, strideC, count);
  });
}

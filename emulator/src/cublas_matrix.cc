/*!
 * \file cublas_matrix.cc
 * \brief cuBLAS functions of matrices, by OpenBLAS.
 *
 * C is cut into tiles, whose size depends on that of C alone, and the pool's threads take them in
 * turn: however many threads there are, every element is computed in the same way, so results
 * never differ.
 */
#include <algorithm>

#include "cublas_calls.h"
#include "cublas_capture.h"
#include "cublas_gemm.h"
#include "cublas_types.h"
#include "pool.h"
#include "variables.h"

namespace emulator {
namespace {

// Large tiles waste less time on copies of A and B; several tiles keep several cores busy.
const int64_t kMaxTileRows = 1024, kMinTileRows = 256, kTileColumns = 512, kEnoughTiles = 8;

template <typename T>
void run_tile(const Gemm<T>& g, int64_t rows, int64_t row, int64_t column) {
  DeviceAccess access;
  const T* A = g.A + (g.transa == CUBLAS_OP_N ? row : row * g.lda);
  const T* B = g.B + (g.transb == CUBLAS_OP_N ? column * g.ldb : column);
  Blas<T>::gemm(CblasColMajor, blas(g.transa), blas(g.transb), std::min(rows, g.m - row),
                std::min(kTileColumns, g.n - column), g.k, g.alpha, A, g.lda, B, g.ldb, g.beta,
                g.C + row + column * g.ldc, g.ldc);
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

template <typename T>
void multiply_tiles(const Gemm<T>& g) {
  const KernelVariables variables(is_variable(g.A) || is_variable(g.B) || is_variable(g.C));
  int64_t rows = kMaxTileRows;
  int64_t tiles_n = ceil_div(g.n, kTileColumns);
  while (rows > kMinTileRows && ceil_div(g.m, rows) * tiles_n < kEnoughTiles) rows /= 2;
  int64_t tiles_m = ceil_div(g.m, rows);
  parallel_for(tiles_m * tiles_n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile)
      run_tile(g, rows, tile % tiles_m * rows, tile / tiles_m * kTileColumns);
  });
}

template void multiply_tiles(const Gemm<float>&);
template void multiply_tiles(const Gemm<double>&);

namespace {

// Rows of a matrix as it is stored.
template <typename T>
int64_t rows_of_A(const Gemm<T>& g) {
  return g.transa == CUBLAS_OP_N ? g.m : g.k;
}
template <typename T>
int64_t rows_of_B(const Gemm<T>& g) {
  return g.transb == CUBLAS_OP_N ? g.k : g.n;
}

template <typename T>
bool is_valid(const Gemm<T>& g) {
  return is_value(g.transa) && is_value(g.transb) && g.m >= 0 && g.n >= 0 && g.k >= 0 &&
         g.lda >= std::max<int64_t>(1, rows_of_A(g)) &&
         g.ldb >= std::max<int64_t>(1, rows_of_B(g)) && g.ldc >= std::max<int64_t>(1, g.m);
}

// Sizes, leading dimensions and scalars; what a GPU refuses without looking at the matrices.
template <typename T>
cublasStatus_t prepare(cublasHandle_t handle, Gemm<T>* g, const T* alpha, const T* beta) {
  if (!is_valid(*g) || !is_scalar(handle, alpha, sizeof(T)) || !is_scalar(handle, beta, sizeof(T)))
    return CUBLAS_STATUS_INVALID_VALUE;
  DeviceAccess access;
  g->alpha = *alpha;
  g->beta = *beta;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t check_matrices(const char* function, const Gemm<T>& g) {
  int columns_A = g.transa == CUBLAS_OP_N ? g.k : g.m,
      columns_B = g.transb == CUBLAS_OP_N ? g.n : g.k;
  EMULATOR_CHECK_OPERAND(function, "A", g.A,
                         matrix_span(rows_of_A(g), columns_A, g.lda, sizeof(T)));
  EMULATOR_CHECK_OPERAND(function, "B", g.B,
                         matrix_span(rows_of_B(g), columns_B, g.ldb, sizeof(T)));
  EMULATOR_CHECK_OPERAND(function, "C", g.C, matrix_span(g.m, g.n, g.ldc, sizeof(T)));
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
TypedMatrix stored(const T* data, cublasOperation_t op, int64_t rows, int64_t columns, int64_t ld) {
  const cudaDataType type = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;
  if (op != CUBLAS_OP_N) std::swap(rows, columns);
  return {data, type, rows, columns, 1, ld};
}

template <typename T>
cublasStatus_t checked_run(const char* function, cublasHandle_t handle, const Gemm<T>& g) {
  if (g.m == 0 || g.n == 0) return CUBLAS_STATUS_SUCCESS;
  cublasStatus_t status = check_matrices(function, g);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  tell_streams(function, handle->stream,
               {stored(g.A, g.transa, g.m, g.k, g.lda), stored(g.B, g.transb, g.k, g.n, g.ldb)},
               stored(g.C, CUBLAS_OP_N, g.m, g.n, g.ldc));
  multiply_tiles(g);
  return status;
}

template <typename T>
cublasStatus_t gemm(const char* name, cublasHandle_t handle, cublasOperation_t transa,
                    cublasOperation_t transb, int m, int n, int k, const T* alpha, const T* A,
                    int lda, const T* B, int ldb, const T* beta, T* C, int ldc) {
  EMULATOR_CHECK_HANDLE(handle);
  Gemm<T> g{transa, transb, m, n, k, 0, A, lda, B, ldb, 0, C, ldc};
  cublasStatus_t status = prepare(handle, &g, alpha, beta);
  return status == CUBLAS_STATUS_SUCCESS ? checked_run(name, handle, g) : status;
}

template <typename T>
cublasStatus_t gemm_strided_batched(const char* name, cublasHandle_t handle,
                                    cublasOperation_t transa, cublasOperation_t transb, int m,
                                    int n, int k, const T* alpha, const T* A, int lda,
                                    long long strideA, const T* B, int ldb, long long strideB,
                                    const T* beta, T* C, int ldc, long long strideC, int count) {
  EMULATOR_CHECK_HANDLE(handle);
  Gemm<T> g{transa, transb, m, n, k, 0, A, lda, B, ldb, 0, C, ldc};
  cublasStatus_t status = prepare(handle, &g, alpha, beta);
  if (count < 0) status = CUBLAS_STATUS_INVALID_VALUE;
  for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i) {
    g.A = A + i * strideA;
    g.B = B + i * strideB;
    g.C = C + i * strideC;
    status = checked_run(name, handle, g);
  }
  return status;
}

template <typename T>
cublasStatus_t gemm_batched(const char* name, cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const T* alpha,
                            const T* const A[], int lda, const T* const B[], int ldb, const T* beta,
                            T* const C[], int ldc, int count) {
  EMULATOR_CHECK_HANDLE(handle);
  Gemm<T> g{transa, transb, m, n, k, 0, nullptr, lda, nullptr, ldb, 0, nullptr, ldc};
  cublasStatus_t status = prepare(handle, &g, alpha, beta);
  if (count < 0) status = CUBLAS_STATUS_INVALID_VALUE;
  if (count <= 0 || status != CUBLAS_STATUS_SUCCESS) return status;
  const size_t size = count * sizeof(T*);
  EMULATOR_CUBLAS_OPERANDS(name, {"array A", A, size}, {"array B", B, size}, {"array C", C, size});
  for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i) {
    g.A = value_of(A + i);
    g.B = value_of(B + i);
    g.C = value_of(C + i);
    status = checked_run(name, handle, g);
  }
  return status;
}

}  // namespace
}  // namespace emulator

#define EMULATOR_DEFINE(T, letter)                                                              \
  cublasStatus_t cublas##letter##gemm(cublasHandle_t handle, cublasOperation_t transa,          \
                                      cublasOperation_t transb, int m, int n, int k,            \
                                      const T* alpha, const T* A, int lda, const T* B, int ldb, \
                                      const T* beta, T* C, int ldc) {                           \
    EMULATOR_HOST_CALL();                                                                       \
    return EMULATOR_CUBLAS(gemm, "cublas" #letter "gemm", transa, transb, m, n, k,              \
                           emulator::number(alpha), A, lda, B, ldb, emulator::number(beta), C,  \
                           ldc);                                                                \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                                \
  cublasStatus_t cublas##letter##gemmBatched(                                                     \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,    \
      int k, const T* alpha, const T* const A[], int lda, const T* const B[], int ldb,            \
      const T* beta, T* const C[], int ldc, int count) {                                          \
    EMULATOR_HOST_CALL();                                                                         \
    return EMULATOR_CUBLAS(gemm_batched, "cublas" #letter "gemmBatched", transa, transb, m, n, k, \
                           emulator::number(alpha), A, lda, B, ldb, emulator::number(beta), C,    \
                           ldc, count);                                                           \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

#define EMULATOR_DEFINE(T, letter)                                                              \
  cublasStatus_t cublas##letter##gemmStridedBatched(                                            \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,  \
      int k, const T* alpha, const T* A, int lda, long long strideA, const T* B, int ldb,       \
      long long strideB, const T* beta, T* C, int ldc, long long strideC, int count) {          \
    EMULATOR_HOST_CALL();                                                                       \
    return EMULATOR_CUBLAS(gemm_strided_batched, "cublas" #letter "gemmStridedBatched", transa, \
                           transb, m, n, k, emulator::number(alpha), A, lda, strideA, B, ldb,   \
                           strideB, emulator::number(beta), C, ldc, strideC, count);            \
  }
EMULATOR_BOTH(EMULATOR_DEFINE)
#undef EMULATOR_DEFINE

/*!
 * \file cublas_matrix.cc
 * \brief cuBLAS functions of matrices, by OpenBLAS.
 *
 * C is cut into tiles, whose size depends on that of C alone, and the pool's threads take them in
 * turn: however many threads there are, every element is computed in the same way, so results
 * never differ.
 */
#include <cblas.h>

#include <algorithm>

#include "cublas_handle.h"
#include "pool.h"
#include "protection.h"

namespace emulator {
namespace {

// Large tiles waste less time on copies of A and B; several tiles keep several cores busy.
const int64_t kMaxTileRows = 1024, kMinTileRows = 256, kTileColumns = 512, kEnoughTiles = 8;

template <typename T>
struct Gemm {
  cublasOperation_t transa, transb;
  int64_t m, n, k;
  T alpha;
  const T* A;
  int64_t lda;
  const T* B;
  int64_t ldb;
  T beta;
  T* C;
  int64_t ldc;
};

CBLAS_TRANSPOSE blas(cublasOperation_t op) { return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans; }

void multiply(const Gemm<float>& g, int64_t m, int64_t n, const float* A, const float* B,
              float* C) {
  scipy_cblas_sgemm(CblasColMajor, blas(g.transa), blas(g.transb), m, n, g.k, g.alpha, A, g.lda, B,
                    g.ldb, g.beta, C, g.ldc);
}
void multiply(const Gemm<double>& g, int64_t m, int64_t n, const double* A, const double* B,
              double* C) {
  scipy_cblas_dgemm(CblasColMajor, blas(g.transa), blas(g.transb), m, n, g.k, g.alpha, A, g.lda, B,
                    g.ldb, g.beta, C, g.ldc);
}

template <typename T>
void run_tile(const Gemm<T>& g, int64_t rows, int64_t row, int64_t column) {
  DeviceAccess access;
  const T* A = g.A + (g.transa == CUBLAS_OP_N ? row : row * g.lda);
  const T* B = g.B + (g.transb == CUBLAS_OP_N ? column * g.ldb : column);
  multiply(g, std::min(rows, g.m - row), std::min(kTileColumns, g.n - column), A, B,
           g.C + row + column * g.ldc);
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename T>
void run(const Gemm<T>& g) {
  int64_t rows = kMaxTileRows;
  int64_t tiles_n = ceil_div(g.n, kTileColumns);
  while (rows > kMinTileRows && ceil_div(g.m, rows) * tiles_n < kEnoughTiles) rows /= 2;
  int64_t tiles_m = ceil_div(g.m, rows);
  parallel_for(tiles_m * tiles_n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile)
      run_tile(g, rows, tile % tiles_m * rows, tile / tiles_m * kTileColumns);
  });
}

bool is_operation(cublasOperation_t op) {
  return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

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
  return is_operation(g.transa) && is_operation(g.transb) && g.m >= 0 && g.n >= 0 && g.k >= 0 &&
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
cublasStatus_t checked_run(const char* function, const Gemm<T>& g) {
  if (g.m == 0 || g.n == 0) return CUBLAS_STATUS_SUCCESS;
  cublasStatus_t status = check_matrices(function, g);
  if (status == CUBLAS_STATUS_SUCCESS) run(g);
  return status;
}

}  // namespace
}  // namespace emulator

using emulator::Gemm;

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const float* alpha,
                           const float* A, int lda, const float* B, int ldb, const float* beta,
                           float* C, int ldc) {
  EMULATOR_CHECK_HANDLE(handle);
  Gemm<float> g{transa, transb, m, n, k, 0, A, lda, B, ldb, 0, C, ldc};
  cublasStatus_t status = emulator::prepare(handle, &g, alpha, beta);
  return status == CUBLAS_STATUS_SUCCESS ? emulator::checked_run("cublasSgemm", g) : status;
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const double* alpha,
                           const double* A, int lda, const double* B, int ldb, const double* beta,
                           double* C, int ldc) {
  EMULATOR_CHECK_HANDLE(handle);
  Gemm<double> g{transa, transb, m, n, k, 0, A, lda, B, ldb, 0, C, ldc};
  cublasStatus_t status = emulator::prepare(handle, &g, alpha, beta);
  return status == CUBLAS_STATUS_SUCCESS ? emulator::checked_run("cublasDgemm", g) : status;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const float* alpha, const float* A, int lda,
                                         long long strideA, const float* B, int ldb,
                                         long long strideB, const float* beta, float* C, int ldc,
                                         long long strideC, int count) {
  EMULATOR_CHECK_HANDLE(handle);
  Gemm<float> g{transa, transb, m, n, k, 0, A, lda, B, ldb, 0, C, ldc};
  cublasStatus_t status = emulator::prepare(handle, &g, alpha, beta);
  if (count < 0) status = CUBLAS_STATUS_INVALID_VALUE;
  for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i) {
    g.A = A + i * strideA;
    g.B = B + i * strideB;
    g.C = C + i * strideC;
    status = emulator::checked_run("cublasSgemmStridedBatched", g);
  }
  return status;
}

cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k, const float* alpha,
                                  const float* const A[], int lda, const float* const B[], int ldb,
                                  const float* beta, float* const C[], int ldc, int count) {
  EMULATOR_CHECK_HANDLE(handle);
  Gemm<float> g{transa, transb, m, n, k, 0, nullptr, lda, nullptr, ldb, 0, nullptr, ldc};
  cublasStatus_t status = emulator::prepare(handle, &g, alpha, beta);
  if (count < 0) status = CUBLAS_STATUS_INVALID_VALUE;
  if (count <= 0 || status != CUBLAS_STATUS_SUCCESS) return status;
  const size_t size = count * sizeof(float*);
  EMULATOR_CHECK_OPERAND("cublasSgemmBatched", "array A", A, size);
  EMULATOR_CHECK_OPERAND("cublasSgemmBatched", "array B", B, size);
  EMULATOR_CHECK_OPERAND("cublasSgemmBatched", "array C", C, size);
  for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i) {
    {
      emulator::DeviceAccess access;
      g.A = A[i];
      g.B = B[i];
      g.C = C[i];
    }
    status = emulator::checked_run("cublasSgemmBatched", g);
  }
  return status;
}

/*!
 * \file cublas_gemm.h
 * \brief A product of matrices, C = alpha op(A) op(B) + beta C.
 */
#ifndef EMULATOR_CUBLAS_GEMM_H_
#define EMULATOR_CUBLAS_GEMM_H_

#include <cstdint>

#include "cublas_v2.h"

namespace emulator {

/*! \brief Sizes and matrices as cublasSgemm is given them. */
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

/*! \brief Computes it, on several cores. The matrices may be the host's. */
template <typename T>
void multiply_tiles(const Gemm<T>& g);

}  // namespace emulator

#endif  // EMULATOR_CUBLAS_GEMM_H_

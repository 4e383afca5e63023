/*!
 * \file cublas_lt.h
 * \brief The objects of cuBLASLt.
 */
#ifndef EMULATOR_CUBLAS_LT_H_
#define EMULATOR_CUBLAS_LT_H_

#include "cublasLt.h"

struct cublasLtMatrixLayout {
  cudaDataType type;
  int32_t order;
  uint64_t rows, columns;
  int64_t ld;
  int32_t count;
  int64_t offset;  // from one matrix to the next, in elements
};

struct cublasLtMatmulDesc {
  cublasComputeType_t compute;
  cudaDataType scale;
  int32_t pointer_mode, transa, transb, transc;
  uint32_t epilogue;
  const void* bias;
  int64_t bias_offset;
  int32_t bias_type;    // -1: D's
  const char* refused;  // what was asked for that there is not, or null
};

#endif  // EMULATOR_CUBLAS_LT_H_

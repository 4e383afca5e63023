/*!
 * \file cublas_v2.h
 * \brief The functions of cuBLAS that the emulated GPU has.
 *
 * As in NVIDIA's library, matrices are stored by columns, and `ld` is the distance between two
 * columns in elements. Matrices and vectors are device memory; alpha, beta and results are the
 * host's unless cublasSetPointerMode says otherwise.
 */
#ifndef CUBLAS_V2_H_
#define CUBLAS_V2_H_

// What helper headers look for.
#define CUBLAS_API_H_
#define CUBLASAPI
#define CUBLASWINAPI

#include "cuda_fp16.h"
#include "cuda_runtime_api.h"
#include "library_types.h"

#define CUBLAS_VER_MAJOR 12
#define CUBLAS_VER_MINOR 8
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VER_BUILD 0
#define CUBLAS_VERSION 120800

typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;

typedef enum {
  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,
  CUBLAS_OP_C = 2,
  CUBLAS_OP_HERMITAN = 2,
  CUBLAS_OP_CONJG = 3
} cublasOperation_t;

typedef enum {
  CUBLAS_FILL_MODE_LOWER = 0,
  CUBLAS_FILL_MODE_UPPER = 1,
  CUBLAS_FILL_MODE_FULL = 2
} cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;

typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;

typedef enum {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;

// Which kernel of NVIDIA's is meant makes no difference here.
typedef enum {
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_ALGO0 = 0,
  CUBLAS_GEMM_ALGO1 = 1,
  CUBLAS_GEMM_ALGO2 = 2,
  CUBLAS_GEMM_ALGO3 = 3,
  CUBLAS_GEMM_ALGO4 = 4,
  CUBLAS_GEMM_ALGO5 = 5,
  CUBLAS_GEMM_ALGO6 = 6,
  CUBLAS_GEMM_ALGO7 = 7,
  CUBLAS_GEMM_ALGO8 = 8,
  CUBLAS_GEMM_ALGO9 = 9,
  CUBLAS_GEMM_ALGO10 = 10,
  CUBLAS_GEMM_ALGO11 = 11,
  CUBLAS_GEMM_ALGO12 = 12,
  CUBLAS_GEMM_ALGO13 = 13,
  CUBLAS_GEMM_ALGO14 = 14,
  CUBLAS_GEMM_ALGO15 = 15,
  CUBLAS_GEMM_ALGO16 = 16,
  CUBLAS_GEMM_ALGO17 = 17,
  CUBLAS_GEMM_ALGO18 = 18,
  CUBLAS_GEMM_ALGO19 = 19,
  CUBLAS_GEMM_ALGO20 = 20,
  CUBLAS_GEMM_ALGO21 = 21,
  CUBLAS_GEMM_ALGO22 = 22,
  CUBLAS_GEMM_ALGO23 = 23,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
  CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
  CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
  CUBLAS_GEMM_ALGO1_TENSOR_OP = 101,
  CUBLAS_GEMM_ALGO2_TENSOR_OP = 102,
  CUBLAS_GEMM_ALGO3_TENSOR_OP = 103,
  CUBLAS_GEMM_ALGO4_TENSOR_OP = 104,
  CUBLAS_GEMM_ALGO5_TENSOR_OP = 105,
  CUBLAS_GEMM_ALGO6_TENSOR_OP = 106,
  CUBLAS_GEMM_ALGO7_TENSOR_OP = 107,
  CUBLAS_GEMM_ALGO8_TENSOR_OP = 108,
  CUBLAS_GEMM_ALGO9_TENSOR_OP = 109,
  CUBLAS_GEMM_ALGO10_TENSOR_OP = 110,
  CUBLAS_GEMM_ALGO11_TENSOR_OP = 111,
  CUBLAS_GEMM_ALGO12_TENSOR_OP = 112,
  CUBLAS_GEMM_ALGO13_TENSOR_OP = 113,
  CUBLAS_GEMM_ALGO14_TENSOR_OP = 114,
  CUBLAS_GEMM_ALGO15_TENSOR_OP = 115
} cublasGemmAlgo_t;

typedef enum {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;

typedef cudaDataType cublasDataType_t;

typedef struct cublasContext* cublasHandle_t;

extern "C" {

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode);
// Arithmetic is always float32: a mode that allows less makes no difference.
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t size);
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value);
const char* cublasGetStatusString(cublasStatus_t status);
const char* cublasGetStatusName(cublasStatus_t status);

#define EMULATOR_REAL float
#define EMULATOR_CUBLAS(name) cublasS##name
#include "emulator/cublas_real.h"
#undef EMULATOR_REAL
#undef EMULATOR_CUBLAS
#define EMULATOR_REAL double
#define EMULATOR_CUBLAS(name) cublasD##name
#include "emulator/cublas_real.h"
#undef EMULATOR_REAL
#undef EMULATOR_CUBLAS

/*! \brief result = number of the first element with the largest, or smallest, |x[i]|, from 1 on. */
cublasStatus_t cublasIsamax(cublasHandle_t handle, int n, const float* x, int incx, int* result);
cublasStatus_t cublasIdamax(cublasHandle_t handle, int n, const double* x, int incx, int* result);
cublasStatus_t cublasIsamin(cublasHandle_t handle, int n, const float* x, int incx, int* result);
cublasStatus_t cublasIdamin(cublasHandle_t handle, int n, const double* x, int incx, int* result);

// Products of matrices of any types: sums are float's, and rounded once at the end. (double's with
// CUBLAS_COMPUTE_64F, exact with CUBLAS_COMPUTE_32I.)
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* A, cudaDataType typeA, int lda, const void* B,
                            cudaDataType typeB, int ldb, const void* beta, void* C,
                            cudaDataType typeC, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                   cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                   const void* const A[], cudaDataType typeA, int lda,
                                   const void* const B[], cudaDataType typeB, int ldb,
                                   const void* beta, void* const C[], cudaDataType typeC, int ldc,
                                   int count, cublasComputeType_t compute,
                                   cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
    const void* alpha, const void* A, cudaDataType typeA, int lda, long long strideA, const void* B,
    cudaDataType typeB, int ldb, long long strideB, const void* beta, void* C, cudaDataType typeC,
    int ldc, long long strideC, int count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa,
                             cublasOperation_t transb, int m, int n, int k, const float* alpha,
                             const void* A, cudaDataType typeA, int lda, const void* B,
                             cudaDataType typeB, int ldb, const float* beta, void* C,
                             cudaDataType typeC, int ldc);
cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const __half* alpha,
                           const __half* A, int lda, const __half* B, int ldb, const __half* beta,
                           __half* C, int ldc);
cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t transa,
                                  cublasOperation_t transb, int m, int n, int k,
                                  const __half* alpha, const __half* const A[], int lda,
                                  const __half* const B[], int ldb, const __half* beta,
                                  __half* const C[], int ldc, int count);
cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const __half* alpha, const __half* A, int lda,
                                         long long strideA, const __half* B, int ldb,
                                         long long strideB, const __half* beta, __half* C, int ldc,
                                         long long strideC, int count);

// Copies between host and device: of `n` elements, `inc` apart, or of a matrix.
cublasStatus_t cublasSetVector(int n, int size, const void* x, int incx, void* y, int incy);
cublasStatus_t cublasGetVector(int n, int size, const void* x, int incx, void* y, int incy);
cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* A, int lda, void* B,
                               int ldb);
cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* A, int lda, void* B,
                               int ldb);

// The same, for other work beside them.
cublasStatus_t cublasSetVectorAsync(int n, int size, const void* x, int incx, void* y, int incy,
                                    cudaStream_t stream);
cublasStatus_t cublasGetVectorAsync(int n, int size, const void* x, int incx, void* y, int incy,
                                    cudaStream_t stream);
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int size, const void* A, int lda,
                                    void* B, int ldb, cudaStream_t stream);
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int size, const void* A, int lda,
                                    void* B, int ldb, cudaStream_t stream);

}  // extern "C"

// As before CUDA 11: the computation named by the type of its numbers.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* A, cudaDataType typeA, int lda, const void* B,
                            cudaDataType typeB, int ldb, const void* beta, void* C,
                            cudaDataType typeC, int ldc, cudaDataType compute,
                            cublasGemmAlgo_t algorithm);

// The library's own names for the same functions.
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasGetVersion_v2 cublasGetVersion
#define cublasSetStream_v2 cublasSetStream
#define cublasGetStream_v2 cublasGetStream
#define cublasSetPointerMode_v2 cublasSetPointerMode
#define cublasGetPointerMode_v2 cublasGetPointerMode
#define cublasSetWorkspace_v2 cublasSetWorkspace
#define cublasIsamax_v2 cublasIsamax
#define cublasIdamax_v2 cublasIdamax
#define cublasIsamin_v2 cublasIsamin
#define cublasIdamin_v2 cublasIdamin
#define cublasSaxpy_v2 cublasSaxpy
#define cublasSscal_v2 cublasSscal
#define cublasScopy_v2 cublasScopy
#define cublasSswap_v2 cublasSswap
#define cublasSdot_v2 cublasSdot
#define cublasSnrm2_v2 cublasSnrm2
#define cublasSasum_v2 cublasSasum
#define cublasSrot_v2 cublasSrot
#define cublasSrotg_v2 cublasSrotg
#define cublasSrotm_v2 cublasSrotm
#define cublasSrotmg_v2 cublasSrotmg
#define cublasSgemv_v2 cublasSgemv
#define cublasSgbmv_v2 cublasSgbmv
#define cublasSger_v2 cublasSger
#define cublasSsymv_v2 cublasSsymv
#define cublasSsbmv_v2 cublasSsbmv
#define cublasSspmv_v2 cublasSspmv
#define cublasSsyr_v2 cublasSsyr
#define cublasSspr_v2 cublasSspr
#define cublasSsyr2_v2 cublasSsyr2
#define cublasSspr2_v2 cublasSspr2
#define cublasStrmv_v2 cublasStrmv
#define cublasStrsv_v2 cublasStrsv
#define cublasStbmv_v2 cublasStbmv
#define cublasStbsv_v2 cublasStbsv
#define cublasStpmv_v2 cublasStpmv
#define cublasStpsv_v2 cublasStpsv
#define cublasSgemm_v2 cublasSgemm
#define cublasSsymm_v2 cublasSsymm
#define cublasSsyrk_v2 cublasSsyrk
#define cublasSsyr2k_v2 cublasSsyr2k
#define cublasStrmm_v2 cublasStrmm
#define cublasStrsm_v2 cublasStrsm
#define cublasDaxpy_v2 cublasDaxpy
#define cublasDscal_v2 cublasDscal
#define cublasDcopy_v2 cublasDcopy
#define cublasDswap_v2 cublasDswap
#define cublasDdot_v2 cublasDdot
#define cublasDnrm2_v2 cublasDnrm2
#define cublasDasum_v2 cublasDasum
#define cublasDrot_v2 cublasDrot
#define cublasDrotg_v2 cublasDrotg
#define cublasDrotm_v2 cublasDrotm
#define cublasDrotmg_v2 cublasDrotmg
#define cublasDgemv_v2 cublasDgemv
#define cublasDgbmv_v2 cublasDgbmv
#define cublasDger_v2 cublasDger
#define cublasDsymv_v2 cublasDsymv
#define cublasDsbmv_v2 cublasDsbmv
#define cublasDspmv_v2 cublasDspmv
#define cublasDsyr_v2 cublasDsyr
#define cublasDspr_v2 cublasDspr
#define cublasDsyr2_v2 cublasDsyr2
#define cublasDspr2_v2 cublasDspr2
#define cublasDtrmv_v2 cublasDtrmv
#define cublasDtrsv_v2 cublasDtrsv
#define cublasDtbmv_v2 cublasDtbmv
#define cublasDtbsv_v2 cublasDtbsv
#define cublasDtpmv_v2 cublasDtpmv
#define cublasDtpsv_v2 cublasDtpsv
#define cublasDgemm_v2 cublasDgemm
#define cublasDsymm_v2 cublasDsymm
#define cublasDsyrk_v2 cublasDsyrk
#define cublasDsyr2k_v2 cublasDsyr2k
#define cublasDtrmm_v2 cublasDtrmm
#define cublasDtrsm_v2 cublasDtrsm

#endif  // CUBLAS_V2_H_

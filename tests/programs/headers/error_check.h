// Checks of errors for several APIs; each part is there if the API's header came before.
#ifndef COMMON_ERROR_CHECK_H
#define COMMON_ERROR_CHECK_H

#include <cstdio>
#include <cstdlib>

#ifdef __DRIVER_TYPES_H__
static const char *errorName(cudaError_t error) { return cudaGetErrorName(error); }
#endif

#ifdef CUBLAS_API_H_
static const char *errorName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "unknown cuBLAS status";
  }
}
#endif

#ifdef __cuda_cuda_h__
static const char *errorName(CUresult result) {
  const char *name = NULL;
  cuGetErrorName(result, &name);
  return name ? name : "unknown CUresult";
}
#endif

template <typename T>
void checkResult(T result, const char *call, const char *file, int line) {
  if (result) {
    fprintf(stderr, "%s:%d: %s returned %d (%s)\n", file, line, call, static_cast<int>(result),
            errorName(result));
    exit(EXIT_FAILURE);
  }
}

#ifdef __DRIVER_TYPES_H__
#define checkCudaErrors(call) checkResult((call), #call, __FILE__, __LINE__)
#define getLastCudaError(message) checkLast(message, __FILE__, __LINE__)

inline void checkLast(const char *message, const char *file, int line) {
  cudaError_t error = cudaGetLastError();
  if (cudaSuccess != error) {
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, message, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
}
#endif

#ifdef __CUDA_RUNTIME_H__
// The first device, or the end of the program.
inline int findCudaDevice() {
  int count = 0;
  checkCudaErrors(cudaGetDeviceCount(&count));
  if (count == 0) {
    fprintf(stderr, "there is no CUDA device\n");
    exit(EXIT_FAILURE);
  }
  checkCudaErrors(cudaSetDevice(0));
  return 0;
}
#endif

#ifndef MAX
#define MAX(a, b) (a > b ? a : b)
#endif

#endif

/*!
 * \file cublas_copy.cc
 * \brief cuBLAS's copies between host and device, which are rectangles of memory.
 */
#include "cublas_v2.h"

namespace {

// With a stream, the host does not wait. `rows` pieces of `width` bytes, whose starts are some
// bytes apart.
cublasStatus_t copy(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                    size_t rows, cudaMemcpyKind kind, const cudaStream_t* stream) {
  cudaError_t error =
      stream == nullptr
          ? cudaMemcpy2D(to, to_pitch, from, from_pitch, width, rows, kind)
          : cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, kind, *stream);
  if (error == cudaErrorInvalidPitchValue) return CUBLAS_STATUS_INVALID_VALUE;
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

cublasStatus_t copy_vector(int n, int size, const void* x, int incx, void* y, int incy,
                           cudaMemcpyKind kind, const cudaStream_t* stream = nullptr) {
  if (n < 0 || size <= 0 || incx <= 0 || incy <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  const size_t element = size;
  return copy(y, incy * element, x, incx * element, element, n, kind, stream);
}

cublasStatus_t copy_matrix(int rows, int columns, int size, const void* A, int lda, void* B,
                           int ldb, cudaMemcpyKind kind, const cudaStream_t* stream = nullptr) {
  if (rows < 0 || columns < 0 || size <= 0 || lda <= 0 || ldb <= 0 || lda < rows || ldb < rows)
    return CUBLAS_STATUS_INVALID_VALUE;
  const size_t element = size;
  return copy(B, ldb * element, A, lda * element, rows * element, columns, kind, stream);
}

}  // namespace

cublasStatus_t cublasSetVector(int n, int size, const void* x, int incx, void* y, int incy) {
  return copy_vector(n, size, x, incx, y, incy, cudaMemcpyHostToDevice);
}

cublasStatus_t cublasGetVector(int n, int size, const void* x, int incx, void* y, int incy) {
  return copy_vector(n, size, x, incx, y, incy, cudaMemcpyDeviceToHost);
}

cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* A, int lda, void* B,
                               int ldb) {
  return copy_matrix(rows, columns, size, A, lda, B, ldb, cudaMemcpyHostToDevice);
}

cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* A, int lda, void* B,
                               int ldb) {
  return copy_matrix(rows, columns, size, A, lda, B, ldb, cudaMemcpyDeviceToHost);
}

cublasStatus_t cublasSetVectorAsync(int n, int size, const void* x, int incx, void* y, int incy,
                                    cudaStream_t stream) {
  return copy_vector(n, size, x, incx, y, incy, cudaMemcpyHostToDevice, &stream);
}

cublasStatus_t cublasGetVectorAsync(int n, int size, const void* x, int incx, void* y, int incy,
                                    cudaStream_t stream) {
  return copy_vector(n, size, x, incx, y, incy, cudaMemcpyDeviceToHost, &stream);
}

cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int size, const void* A, int lda,
                                    void* B, int ldb, cudaStream_t stream) {
  return copy_matrix(rows, columns, size, A, lda, B, ldb, cudaMemcpyHostToDevice, &stream);
}

cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int size, const void* A, int lda,
                                    void* B, int ldb, cudaStream_t stream) {
  return copy_matrix(rows, columns, size, A, lda, B, ldb, cudaMemcpyDeviceToHost, &stream);
}

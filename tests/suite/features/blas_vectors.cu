// feature: vectors in cuBLAS: axpy, scal, dot, nrm2, asum, amax, strides, results on the device
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

static void blas(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) std::printf("# cublas %d\n", status);
}

int main() {
  const int n = 100;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 8;
  float *x, *y, *result, two = 2, half = 0.5f, dot = 0, norm = 0, sum = 0;
  int largest = 0;
  check(cudaMalloc(&x, n * sizeof(float)));
  check(cudaMalloc(&y, n * sizeof(float)));
  check(cudaMalloc(&result, sizeof(float)));
  cublasHandle_t handle;
  blas(cublasCreate(&handle));
  blas(cublasSetVector(n, sizeof(float), host.data(), 1, x, 1));
  check(cudaMemset(y, 0, n * sizeof(float)));
  blas(cublasSaxpy(handle, n, &two, x, 1, y, 1));
  blas(cublasSscal(handle, n / 2, &half, y, 2));
  blas(cublasSdot(handle, n, x, 1, y, 1, &dot));
  blas(cublasSasum(handle, n, y, 1, &sum));
  blas(cublasIsamax(handle, n, y, 1, &largest));
  std::printf("%.9g %.9g %d\n", dot, sum, largest);
  blas(cublasGetVector(n, sizeof(float), y, 1, host.data(), 1));
  for (int i = 0; i < n; i += 13) std::printf("%.9g\n", host[i]);
  // 3, 4, 0, 0, ...: the root is exact.
  for (int i = 0; i < n; ++i) host[i] = i == 10 ? 3 : i == 50 ? 4 : 0;
  blas(cublasSetVector(n, sizeof(float), host.data(), 1, x, 1));
  blas(cublasSnrm2(handle, n, x, 1, &norm));
  blas(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  blas(cublasSdot(handle, n, x, 1, x, 1, result));
  check(cudaMemcpy(&dot, result, sizeof dot, cudaMemcpyDeviceToHost));
  std::printf("%.9g %.9g\n", norm, dot);
  blas(cublasDestroy(handle));
  check(cudaFree(x));
  check(cudaFree(y));
  check(cudaFree(result));
}

// feature: matrices in cuBLAS: gemv, ger, geam with a transposition, a stream of its own
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
  const int m = 9, n = 4;
  std::vector<float> host(m * n);
  for (int i = 0; i < m * n; ++i) host[i] = i % 6;
  float *a, *b, *x, *y, one = 1, zero = 0, two = 2;
  cudaStream_t stream;
  check(cudaMalloc(&a, m * n * sizeof(float)));
  check(cudaMalloc(&b, m * n * sizeof(float)));
  check(cudaMalloc(&x, n * sizeof(float)));
  check(cudaMalloc(&y, m * sizeof(float)));
  check(cudaStreamCreate(&stream));
  cublasHandle_t handle;
  blas(cublasCreate(&handle));
  blas(cublasSetStream(handle, stream));
  check(cudaMemcpy(a, host.data(), m * n * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemcpy(x, host.data() + 1, n * sizeof(float), cudaMemcpyHostToDevice));
  blas(cublasSgemv(handle, CUBLAS_OP_N, m, n, &two, a, m, x, 1, &zero, y, 1));
  blas(cublasSger(handle, m, n, &one, y, 1, x, 1, a, m));
  blas(cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, &one, a, m, &zero, b, n, b, n));
  check(cudaStreamSynchronize(stream));
  check(cudaMemcpy(host.data(), b, m * n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < m * n; i += 5) std::printf("%.9g\n", host[i]);
  blas(cublasDestroy(handle));
  check(cudaStreamDestroy(stream));
  check(cudaFree(a));
  check(cudaFree(b));
  check(cudaFree(x));
  check(cudaFree(y));
}

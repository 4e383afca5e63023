// bug: every second element of a vector is taken, which has not that many
// finds: out-of-bounds read global
// line: MARK
// sanitizer: memcheck
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

int main() {
  const int n = 300;
#ifdef FIXED
  const int count = n / 2;
#else
  const int count = n;
#endif
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  float *x, *y, two = 2;
  check(cudaMalloc(&x, n * sizeof(float)));
  check(cudaMalloc(&y, n * sizeof(float)));
  check(cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemset(y, 0, n * sizeof(float)));
  cublasHandle_t handle;
  std::printf("%d\n", cublasCreate(&handle));
  cublasStatus_t status = cublasSaxpy(handle, count, &two, x, 2, y, 1);  // <- bug
  std::printf("# axpy %d\n", status);
  check(cudaMemcpy(host.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n / 2; i += 37) std::printf("%.9g\n", host[i]);
  std::printf("# destroy %d\n", cublasDestroy(handle));
  check(cudaFree(x));
  check(cudaFree(y));
}

// bug: a cuBLAS handle is never destroyed
// finds: cublas handle leaked
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
  const int n = 8;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  float *x, two = 2;
  check(cudaMalloc(&x, n * sizeof(float)));
  check(cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  cublasHandle_t handle;
  std::printf("%d\n", cublasCreate(&handle));  // <- bug
  std::printf("%d\n", cublasSscal(handle, n, &two, x, 1));
  check(cudaMemcpy(host.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) std::printf("%.9g\n", host[i]);
#ifdef FIXED
  std::printf("# destroy %d\n", cublasDestroy(handle));
#endif
  check(cudaFree(x));
}

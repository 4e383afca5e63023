// feature: one handle of cuBLAS that a static variable keeps until the program ends
// tolerates: memcheck
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

static cublasHandle_t the_handle() {
  static cublasHandle_t kept = [] {
    cublasHandle_t made;
    cublasCreate(&made);
    return made;
  }();
  return kept;
}

int main() {
  const int n = 8;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  float *x, two = 2;
  check(cudaMalloc(&x, n * sizeof(float)));
  check(cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  for (int turn = 0; turn < 3; ++turn)
    std::printf("%d\n", cublasSscal(the_handle(), n, &two, x, 1));
  check(cudaMemcpy(host.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) std::printf("%.9g\n", host[i]);
  check(cudaFree(x));
}

// feature: a launch is refused on purpose, and its error read behind a launch that is not
// tolerates: memcheck
#include <cuda_runtime.h>

#include <cstdio>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void set(int* x, int value) { *x = value; }

int main() {
  int *x, host = 0;
  check(cudaMalloc(&x, sizeof(int)));
  set<<<1, 4096>>>(x, 1);
  set<<<1, 1>>>(x, 2);
  std::printf("%d\n", cudaPeekAtLastError() != cudaSuccess);
  std::printf("%d\n", cudaGetLastError() != cudaSuccess);
  std::printf("%d\n", cudaGetLastError() != cudaSuccess);
  check(cudaMemcpy(&host, x, sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host);
  check(cudaFree(x));
}

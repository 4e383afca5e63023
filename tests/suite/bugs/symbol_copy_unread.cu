// bug: a copy to a constant is longer than it, fails, and nobody looks
// finds: call error unread
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__constant__ int weights[4];

__global__ void weigh(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i * weights[i % 4];
}

int main() {
  const int n = 64;
  std::vector<int> host(n, 3);
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
#ifdef FIXED
  check(cudaMemcpyToSymbol(weights, host.data(), sizeof weights));
#else
  cudaMemcpyToSymbol(weights, host.data(), n * sizeof(int));  // <- bug
#endif
  weigh<<<1, n>>>(x, n);
  cudaError_t error = cudaDeviceSynchronize();
  check(error);
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[n - 1]);
  check(cudaFree(x));
}

// bug: a result is copied back after its buffer was freed
// finds: use after free
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void square(int* x) { x[threadIdx.x] = threadIdx.x * threadIdx.x; }

int main() {
  const int n = 64;
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
  square<<<1, n>>>(x);
  check(cudaGetLastError());
  std::vector<int> host(n);
#ifndef FIXED
  check(cudaFree(x));
#endif
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));  // <- bug
#ifdef FIXED
  std::printf("%d\n", host[n - 1]);
  check(cudaFree(x));
#endif
}

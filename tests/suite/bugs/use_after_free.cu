// bug: a kernel writes to a buffer that was freed
// finds: use after free
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void fill(int* x) { x[threadIdx.x] = threadIdx.x; }  // <- bug

int main() {
  const int n = 64;
  int *kept, *x;
  check(cudaMalloc(&kept, n * sizeof(int)));
  check(cudaMalloc(&x, n * sizeof(int)));
  fill<<<1, n>>>(kept);
  check(cudaGetLastError());
#ifndef FIXED
  check(cudaFree(x));
#endif
  fill<<<1, n>>>(x);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), kept, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[n - 1]);
#ifdef FIXED
  check(cudaFree(x));
#endif
  check(cudaFree(kept));
}

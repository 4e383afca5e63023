// bug: a result is copied to the host from memory that no kernel wrote
// finds: uninitialised read global
// line: MARK
// sanitizer: initcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void square(int* x) { x[threadIdx.x] = threadIdx.x * threadIdx.x; }

int main() {
  const int n = 64;
  int *x, *y;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMalloc(&y, n * sizeof(int)));
  square<<<1, n>>>(x);
  check(cudaGetLastError());
#ifdef FIXED
  square<<<1, n>>>(y);
  check(cudaGetLastError());
#endif
  std::vector<int> host(n), unused(n);
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(unused.data(), y, n * sizeof(int), cudaMemcpyDeviceToHost));  // <- bug
  std::printf("%d\n", host[n - 1]);
#ifndef FIXED
  int sum = 0;
  for (int value : unused) sum += value != 0;
  std::printf("# %d of the values are not 0\n", sum);
#endif
  check(cudaFree(x));
  check(cudaFree(y));
}

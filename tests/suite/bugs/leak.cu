// bug: a buffer is never freed
// finds: leak
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
  const int n = 32;
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));  // <- bug
  square<<<1, n>>>(x);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[n - 1]);
#ifdef FIXED
  check(cudaFree(x));
#endif
}

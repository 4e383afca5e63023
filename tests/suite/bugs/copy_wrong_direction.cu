// bug: a copy to the device says that it comes from there
// finds: copy in the wrong direction
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add_one(int* x) { ++x[threadIdx.x]; }

int main() {
  const int n = 64;
#ifdef FIXED
  const cudaMemcpyKind kind = cudaMemcpyHostToDevice;
#else
  const cudaMemcpyKind kind = cudaMemcpyDeviceToHost;
#endif
  std::vector<int> host(n, 6);
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMemset(x, 0, n * sizeof(int)));
  check(cudaMemcpy(x, host.data(), n * sizeof(int), kind));  // <- bug
  add_one<<<1, n>>>(x);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[n - 1]);
  check(cudaFree(x));
}

// bug: more is copied back than the device's buffer holds
// finds: copy past the end
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
#ifdef FIXED
  const int count = n;
#else
  const int count = n + 8;
#endif
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
  square<<<1, n>>>(x);
  check(cudaGetLastError());
  std::vector<int> host(2 * n, 0);
  check(cudaMemcpy(host.data(), x, count * sizeof(int), cudaMemcpyDeviceToHost));  // <- bug
  std::printf("%d\n", host[n - 1]);
  check(cudaFree(x));
}

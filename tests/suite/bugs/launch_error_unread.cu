// bug: a launch of 2048 threads a block fails, and nobody asks
// finds: launch error unread
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void fill(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;
}

int main() {
  const int n = 2048;
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMemset(x, 0, n * sizeof(int)));
#ifdef FIXED
  fill<<<2, 1024>>>(x, n);
  check(cudaGetLastError());
#else
  fill<<<1, 2048>>>(x, n);  // <- bug
#endif
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[n - 1]);
  check(cudaFree(x));
}

// bug: the number of blocks is rounded down to none, and nobody asks
// finds: launch error unread
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add_one(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) ++x[i];
}

int main() {
  const int n = 100;
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMemset(x, 0, n * sizeof(int)));
#ifdef FIXED
  add_one<<<(n + 127) / 128, 128>>>(x, n);
  check(cudaGetLastError());
#else
  add_one<<<n / 128, 128>>>(x, n);  // <- bug
#endif
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[n - 1]);
  check(cudaFree(x));
}

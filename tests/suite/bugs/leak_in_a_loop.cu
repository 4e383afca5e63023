// bug: every round makes a buffer, and only the last one is freed
// finds: leak
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add(int* x, int value) { x[threadIdx.x] = threadIdx.x + value; }

int main() {
  const int n = 64;
  std::vector<int> host(n);
  int* x = nullptr;
  for (int round = 0; round < 5; ++round) {
#ifdef FIXED
    check(cudaFree(x));
#endif
    check(cudaMalloc(&x, n * sizeof(int)));  // <- bug
    add<<<1, n>>>(x, round);
    check(cudaGetLastError());
    check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
    std::printf("%d\n", host[n - 1]);
  }
  check(cudaFree(x));
}

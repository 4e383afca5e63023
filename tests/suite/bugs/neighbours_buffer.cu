// bug: one buffer is overrun into another one, which is as valid an address
// finds: out-of-bounds write global
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void fill(int* x, int count, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = value;  // <- bug
}

int main() {
  const int n = 256;  // 1 KB, a multiple of what allocations are rounded to
  int *all, *first, *second;
  check(cudaMalloc(&all, n * sizeof(int)));
  check(cudaMalloc(&first, n * sizeof(int)));
  check(cudaMalloc(&second, n * sizeof(int)));
  int *low = first < second ? first : second, *high = first < second ? second : first;
  fill<<<2, 256>>>(high, n, 2);
  check(cudaGetLastError());
#ifdef FIXED
  fill<<<2, 256>>>(low, n, 1);
#else
  fill<<<2, 256>>>(low, n + 16, 1);
#endif
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), low, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d %d\n", host[0], host[n - 1]);
  check(cudaMemcpy(host.data(), high, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[n - 1]);
  std::printf("# the other buffer begins with %d\n", host[0]);
  check(cudaFree(all));
  check(cudaFree(first));
  check(cudaFree(second));
}

// feature: one allocation that holds several arrays, each at an offset of its own
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add(const int* a, const int* b, int* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

int main() {
  const int n = 77;
  std::vector<int> host(3 * n);
  for (int i = 0; i < 2 * n; ++i) host[i] = i;
  int* all;
  check(cudaMalloc(&all, 3 * n * sizeof(int)));
  check(cudaMemcpy(all, host.data(), 2 * n * sizeof(int), cudaMemcpyHostToDevice));
  add<<<2, 64>>>(all, all + n, all + 2 * n, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), all, 3 * n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 3 * n; i += 20) std::printf("%d\n", host[i]);
  check(cudaFree(all));
}

// bug: bins get atomic additions, but never a zero to begin with
// finds: uninitialised read global
// line: MARK
// sanitizer: initcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void count(int* bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[i % 16], 1);  // <- bug
}

int main() {
  int* bins;
  check(cudaMalloc(&bins, 16 * sizeof(int)));
#ifdef FIXED
  check(cudaMemset(bins, 0, 16 * sizeof(int)));
#endif
  count<<<4, 128>>>(bins, 500);
  check(cudaGetLastError());
  std::vector<int> host(16);
  check(cudaMemcpy(host.data(), bins, 16 * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < 16; i += 5) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(bins));
}

// bug: the largest value has no bin in the histogram
// finds: out-of-bounds write global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void count(const int* values, int n, int* bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[values[i]], 1);  // <- bug
}

int main() {
  const int n = 500, largest = 10;
#ifdef FIXED
  const int bins = largest + 1;
#else
  const int bins = largest;
#endif
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % (largest + 1);
  int *values, *counts;
  check(cudaMalloc(&values, n * sizeof(int)));
  check(cudaMalloc(&counts, bins * sizeof(int)));
  check(cudaMemcpy(values, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  check(cudaMemset(counts, 0, bins * sizeof(int)));
  count<<<2, 256>>>(values, n, counts);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), counts, bins * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < largest; ++i) std::printf("%d\n", host[i]);
  check(cudaFree(values));
  check(cudaFree(counts));
}

// bug: the threads of a block count into shared bins without atomics
// finds: race shared
// line: MARK
// sanitizer: racecheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void count(const int* in, int* bins) {
  __shared__ int local[8];
  int i = threadIdx.x;
  if (i < 8) local[i] = 0;
  __syncthreads();
#ifdef FIXED
  atomicAdd(&local[in[i] % 8], 1);
#else
  ++local[in[i] % 8];  // <- bug
#endif
  __syncthreads();
  if (i < 8) bins[i] = local[i];
}

int main() {
  const int n = 256;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i;
  int *in, *bins;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&bins, 8 * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  count<<<1, n>>>(in, bins);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), bins, 8 * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < 8; ++i) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(in));
  check(cudaFree(bins));
}

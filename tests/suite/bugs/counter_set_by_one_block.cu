// bug: the first block sets a sum to zero while others may have added to it
// finds: race global
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const int* in, int n, int* total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifndef FIXED
  if (i == 0) *total = 0;  // <- bug
  __syncthreads();
#endif
  if (i < n) atomicAdd(total, in[i]);  // <- bug
}

int main() {
  const int n = 1000;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *total;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&total, sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  check(cudaMemset(total, 0, sizeof(int)));
  sum<<<8, 128>>>(in, n, total);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), total, sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d\n", host[0]);
#endif
  check(cudaFree(in));
  check(cudaFree(total));
}

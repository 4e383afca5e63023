// feature: a sum by shuffles: of warps, then of the warps' sums, then by atomics
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__device__ int sum_of_warp(int value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  return value;
}

__global__ void sum(const int* in, int n, int* total) {
  __shared__ int warps[8];
  int t = threadIdx.x, value = 0;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) value += in[i];
  value = sum_of_warp(value);
  if (t % 32 == 0) warps[t / 32] = value;
  __syncthreads();
  if (t >= 32) return;
  value = sum_of_warp(t < 8 ? warps[t] : 0);
  if (t == 0) atomicAdd(total, value);
}

int main() {
  const int n = 10000;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 37 - 5;
  int *in, *total;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&total, sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  check(cudaMemset(total, 0, sizeof(int)));
  sum<<<5, 256>>>(in, n, total);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), total, sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[0]);
  check(cudaFree(in));
  check(cudaFree(total));
}

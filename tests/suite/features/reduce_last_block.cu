// feature: the last block to finish adds up what all blocks wrote, with fences and a ticket
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__device__ unsigned tickets;

__global__ void sum(const int* in, int n, int* parts, int* total) {
  __shared__ int part[128];
  __shared__ bool last;
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  part[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) {
    parts[blockIdx.x] = part[0];
    __threadfence();
    last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  int value = 0;
  for (unsigned block = t; block < gridDim.x; block += 128) value += parts[block];
  atomicAdd(total, value);
}

int main() {
  const int n = 20000, blocks = (n + 127) / 128;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 19;
  int *in, *parts, *total;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&parts, blocks * sizeof(int)));
  check(cudaMalloc(&total, sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  for (int round = 0; round < 2; ++round) {
    check(cudaMemset(total, 0, sizeof(int)));
    sum<<<blocks, 128>>>(in, n, parts, total);
    check(cudaGetLastError());
    check(cudaMemcpy(host.data(), total, sizeof(int), cudaMemcpyDeviceToHost));
    std::printf("%d\n", host[0]);
  }
  check(cudaFree(in));
  check(cudaFree(parts));
  check(cudaFree(total));
}

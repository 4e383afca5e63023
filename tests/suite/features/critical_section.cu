// feature: a lock that one thread of each block takes, with fences around what it guards
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void append(int* lock, int* total, int* largest) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *total += blockIdx.x;
  if (*largest < static_cast<int>(blockIdx.x)) *largest = blockIdx.x;
  __threadfence();
  atomicExch(lock, 0);
}

int main() {
  int *x, host[3];
  check(cudaMalloc(&x, sizeof host));
  check(cudaMemset(x, 0, sizeof host));
  append<<<40, 32>>>(x, x + 1, x + 2);
  check(cudaGetLastError());
  check(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
  std::printf("%d %d %d\n", host[0], host[1], host[2]);
  check(cudaFree(x));
}

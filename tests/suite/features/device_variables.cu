// feature: variables of the device, initialised, copied by symbol and by address
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__device__ int calls;
__device__ int table[6] = {1, 2, 3, 5, 8, 13};

__global__ void step(int* from_host) {
  atomicAdd(&calls, 1);
  if (blockIdx.x == 0 && threadIdx.x < 6) table[threadIdx.x] += from_host[threadIdx.x];
}

int main() {
  int *address, added[6] = {10, 20, 30, 40, 50, 60}, count = 0, host[6];
  check(cudaMalloc(&address, sizeof added));
  check(cudaMemcpy(address, added, sizeof added, cudaMemcpyHostToDevice));
  step<<<3, 32>>>(address);
  check(cudaGetLastError());
  check(cudaMemcpyFromSymbol(&count, calls, sizeof count));
  check(cudaMemcpyFromSymbol(host, table, sizeof host));
  std::printf("%d\n", count);
  for (int value : host) std::printf("%d\n", value);
  void* symbol;
  check(cudaGetSymbolAddress(&symbol, table));
  check(cudaMemset(symbol, 0, sizeof host));
  step<<<1, 32>>>(static_cast<int*>(symbol));
  check(cudaGetLastError());
  check(cudaMemcpy(host, symbol, sizeof host, cudaMemcpyDeviceToHost));
  for (int value : host) std::printf("%d\n", value);
  check(cudaFree(address));
}

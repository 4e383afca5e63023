// feature: questions about the device and about kernels
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void fill(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;
}

int main() {
  int grid = 0, block = 0, blocks = 0, count = 0, device = -1, threads = 0;
  cudaDeviceProp properties;
  cudaFuncAttributes attributes;
  size_t free = 0, total = 0;
  check(cudaGetDeviceCount(&count));
  check(cudaSetDevice(0));
  check(cudaGetDevice(&device));
  check(cudaGetDeviceProperties(&properties, device));
  check(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, device));
  check(cudaFuncGetAttributes(&attributes, fill));
  check(cudaOccupancyMaxPotentialBlockSize(&grid, &block, fill));
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 128, 0));
  check(cudaMemGetInfo(&free, &total));
  std::printf("%d %d %d %d\n", count > 0, device, properties.warpSize, threads);
  std::printf("%d %d\n", properties.maxThreadsPerBlock, properties.multiProcessorCount > 0);
  std::printf("%d %d %d %d\n", grid > 0, block > 0 && block <= 1024 && block % 32 == 0, blocks > 0,
              free <= total);
  int* x;
  const int n = 3000;
  check(cudaMalloc(&x, n * sizeof(int)));
  fill<<<(n + block - 1) / block, block>>>(x, n);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[n - 1]);
  check(cudaFree(x));
}

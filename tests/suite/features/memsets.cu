// feature: memory that is set: whole, in part, in two dimensions, in a stream
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const unsigned char* x, int n, unsigned* total) {
  unsigned sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i] * (i % 7 + 1);
  atomicAdd(total, sum);
}

int main() {
  const int n = 640;
  unsigned char* x;
  unsigned *total, host = 0;
  cudaStream_t stream;
  check(cudaMalloc(&x, n));
  check(cudaMalloc(&total, sizeof(unsigned)));
  check(cudaStreamCreate(&stream));
  check(cudaMemset(x, 0xab, n));
  check(cudaMemset(x + 100, 3, 50));
  check(cudaMemset2D(x + 4, 64, 0xff, 8, 10));
  check(cudaMemsetAsync(total, 0, sizeof(unsigned), stream));
  check(cudaStreamSynchronize(stream));
  sum<<<1, 64>>>(x, n, total);
  check(cudaGetLastError());
  check(cudaMemcpy(&host, total, sizeof host, cudaMemcpyDeviceToHost));
  std::printf("%u\n", host);
  check(cudaStreamDestroy(stream));
  check(cudaFree(x));
  check(cudaFree(total));
}

// feature: memory that is allocated and freed in the order of a stream, and host functions in it
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void fill(int* x, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i + value;
}

static void add_ten(void* data) { *static_cast<int*>(data) += 10; }

int main() {
  const int n = 400;
  int *x, *host, count = 5;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  check(cudaMallocHost(&host, n * sizeof(int)));
  for (int round = 0; round < 3; ++round) {
    check(cudaMallocAsync(&x, n * sizeof(int), stream));
    fill<<<4, 128, 0, stream>>>(x, n, round);
    check(cudaGetLastError());
    check(cudaMemcpyAsync(host, x, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    check(cudaFreeAsync(x, stream));
    check(cudaLaunchHostFunc(stream, add_ten, &count));
    check(cudaStreamSynchronize(stream));
    std::printf("%d %d %d\n", host[0], host[n - 1], count);
  }
  check(cudaFreeHost(host));
  check(cudaStreamDestroy(stream));
}

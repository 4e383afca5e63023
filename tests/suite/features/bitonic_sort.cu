// feature: bitonic sort of 256 numbers in shared memory, and of 1024 by many launches
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sort_block(int* x) {
  __shared__ int values[256];
  int t = threadIdx.x;
  values[t] = x[t];
  __syncthreads();
  for (int size = 2; size <= 256; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      int other = t ^ stride;
      if (other > t) {
        bool up = (t & size) == 0;
        int a = values[t], b = values[other];
        if ((a > b) == up) {
          values[t] = b;
          values[other] = a;
        }
      }
      __syncthreads();
    }
  x[t] = values[t];
}

__global__ void step(int* x, int size, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ stride;
  if (other <= i) return;
  int a = x[i], b = x[other];
  if ((a > b) == ((i & size) == 0)) {
    x[i] = b;
    x[other] = a;
  }
}

int main() {
  const int n = 1024;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * 7919 % 1009;
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMemcpy(x, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sort_block<<<1, 256>>>(x);
  check(cudaGetLastError());
  std::vector<int> first(256);
  check(cudaMemcpy(first.data(), x, 256 * sizeof(int), cudaMemcpyDeviceToHost));
  for (int size = 2; size <= n; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) step<<<8, 128>>>(x, size, stride);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 256; i += 30) std::printf("%d\n", first[i]);
  for (int i = 0; i < n; i += 100) std::printf("%d\n", host[i]);
  check(cudaFree(x));
}

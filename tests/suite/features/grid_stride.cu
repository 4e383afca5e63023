// feature: loops over more elements than a grid has threads
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void axpy(int a, const int* x, int* y, size_t n) {
  size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) y[i] += a * x[i];
}

int main() {
  const int n = 10001;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *x, *y;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMalloc(&y, n * sizeof(int)));
  check(cudaMemcpy(x, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  check(cudaMemcpy(y, x, n * sizeof(int), cudaMemcpyDeviceToDevice));
  axpy<<<7, 96>>>(3, x, y, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), y, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 1000) std::printf("%d\n", host[i]);
  check(cudaFree(x));
  check(cudaFree(y));
}

// feature: in and out are the same array, each element of which one thread alone uses
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void scale(const float* in, float* out, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * factor;
}

__global__ void swap_halves(int* x, int half) {
  int i = threadIdx.x;
  if (i >= half) return;
  int first = x[i];
  x[i] = x[half + i];
  x[half + i] = first;
}

int main() {
  const int n = 80;
  std::vector<float> host(n);
  std::vector<int> ints(n);
  for (int i = 0; i < n; ++i) host[i] = ints[i] = i;
  float* x;
  int* y;
  check(cudaMalloc(&x, n * sizeof(float)));
  check(cudaMalloc(&y, n * sizeof(int)));
  check(cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemcpy(y, ints.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  scale<<<3, 32>>>(x, x, 1.5f, n);
  check(cudaGetLastError());
  swap_halves<<<1, 64>>>(y, n / 2);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(ints.data(), y, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 9) std::printf("%.9g %d\n", host[i], ints[i]);
  check(cudaFree(x));
  check(cudaFree(y));
}

// feature: managed memory that host and kernels use in turn
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void twice(int* x, int n) {
  int i = threadIdx.x;
  if (i < n) x[i] *= 2;
}

int main() {
  const int n = 100;
  int* x;
  check(cudaMallocManaged(&x, n * sizeof(int)));
  for (int i = 0; i < n; ++i) x[i] = i;
  for (int round = 0; round < 3; ++round) {
    twice<<<1, 128>>>(x, n);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    for (int i = 0; i < n; ++i) ++x[i];
  }
  for (int i = 0; i < n; i += 33) std::printf("%d\n", x[i]);
  check(cudaFree(x));
}

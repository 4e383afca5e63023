// feature: launches in all spellings
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add(int* x, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&x[i % 8], value);
}

template <int kValue>
__global__ void add_constant(int* x) {
  atomicAdd(&x[threadIdx.x % 8], kValue);
}

namespace deep {
__global__ void add(int* x) { atomicAdd(&x[threadIdx.x % 8], 1); }
}  // namespace deep

#define LAUNCH(kernel, ...)        \
  do {                             \
    kernel<<<1, 8>>>(__VA_ARGS__); \
    check(cudaGetLastError());     \
  } while (0)

int main() {
  int *x, host[8];
  cudaStream_t stream;
  check(cudaMalloc(&x, sizeof host));
  check(cudaMemset(x, 0, sizeof host));
  check(cudaStreamCreate(&stream));
  add<<<1, 8>>>(x, 1);
  add<<<dim3(2), dim3(4)>>>(x, 10);
  add<<<dim3(2, 1, 1), 8, 0>>>(x, 100);
  add<<<1, 8, 64, stream>>>(x, 1000);
  add<<<1, 8, 0, nullptr>>>(x, 10000);
  add_constant<3><<<1, 8>>>(x);
  deep::add<<<1, 8>>>(x);
  LAUNCH(add, x, 100000);
  void (*chosen)(int*, int) = add;
  chosen<<<1, 8>>>(x, 5);
  dim3 grid, block(4, 2);
  add<<<grid, block>>>(x, 7);
  check(cudaGetLastError());
  check(cudaStreamSynchronize(stream));
  check(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
  for (int value : host) std::printf("%d\n", value);
  check(cudaStreamDestroy(stream));
  check(cudaFree(x));
}

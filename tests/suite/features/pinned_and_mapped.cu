// feature: pinned host memory, also read and written by kernels
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + 1;
}

int main() {
  const int n = 300;
  int *in, *out, *device_in, *device_out;
  check(cudaHostAlloc(&in, n * sizeof(int), cudaHostAllocMapped));
  check(cudaMallocHost(&out, n * sizeof(int)));
  for (int i = 0; i < n; ++i) in[i] = i * i;
  check(cudaHostGetDevicePointer(&device_in, in, 0));
  check(cudaMalloc(&device_out, n * sizeof(int)));
  add<<<3, 128>>>(device_in, device_out, n);
  check(cudaGetLastError());
  check(cudaMemcpyAsync(out, device_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  check(cudaDeviceSynchronize());
  for (int i = 0; i < n; i += 60) std::printf("%d\n", out[i]);
  check(cudaFreeHost(in));
  check(cudaFreeHost(out));
  check(cudaFree(device_out));
}

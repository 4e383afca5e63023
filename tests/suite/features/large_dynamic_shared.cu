// feature: 96 KB of dynamic shared memory, which a kernel has to be allowed
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void reverse(const int* in, int* out, int n) {
  extern __shared__ int tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = in[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = tile[n - 1 - i];
}

int main() {
  const int n = 24576, size = n * sizeof(int);
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = 3 * i;
  int *in, *out;
  check(cudaMalloc(&in, size));
  check(cudaMalloc(&out, size));
  check(cudaMemcpy(in, host.data(), size, cudaMemcpyHostToDevice));
  check(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, size));
  reverse<<<1, 512, size>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, size, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 4000) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

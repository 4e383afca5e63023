// bug: 64 KB of dynamic shared memory without the attribute that allows it
// finds: shared memory over 48 KB
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void reverse(int* out, int n) {
  extern __shared__ int tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = i;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = tile[n - 1 - i];
}

int main() {
  const int n = 16384;
  const size_t size = n * sizeof(int);
  int* out;
  check(cudaMalloc(&out, size));
  check(cudaMemset(out, 0, size));
#ifdef FIXED
  check(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, size));
#endif
  reverse<<<1, 256, size>>>(out, n);  // <- bug
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, size, cudaMemcpyDeviceToHost));
  std::printf("%d %d\n", host[0], host[n / 2]);
  check(cudaFree(out));
}

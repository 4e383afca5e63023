// bug: threads of a block exchange values in global memory without a barrier
// finds: race global
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void reverse(int* x) {
  int *block = x + blockIdx.x * blockDim.x, i = threadIdx.x, other = blockDim.x - 1 - i;
  int value = block[other];  // <- bug
#ifdef FIXED
  __syncthreads();
#endif
  block[i] = value;  // <- bug
}

int main() {
  const int n = 512;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = 3 * i;
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMemcpy(x, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reverse<<<2, 256>>>(x);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 100) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(x));
}

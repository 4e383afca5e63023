// bug: an assertion of a kernel fails; buffers that cannot be freed after that are no leak
// finds: assertion failed
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void halve(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  assert(x[i] % 2 == 0);  // <- bug
  x[i] /= 2;
}

int main() {
  const int n = 64;
  std::vector<int> host(n);
#ifdef FIXED
  for (int i = 0; i < n; ++i) host[i] = 2 * i;
#else
  for (int i = 0; i < n; ++i) host[i] = 3 * i;
#endif
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMemcpy(x, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  halve<<<2, 32>>>(x, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 9) std::printf("%d\n", host[i]);
  check(cudaFree(x));
}

// bug: the guard lets one thread past the end
// finds: out-of-bounds write global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void fill(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
  if (i < n)
#else
  if (i <= n)
#endif
    x[i] = 3 * i;  // <- bug
}

int main() {
  const int n = 1000;
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
  fill<<<4, 256>>>(x, n);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 99; i < n; i += 100) std::printf("%d\n", host[i]);
  check(cudaFree(x));
}

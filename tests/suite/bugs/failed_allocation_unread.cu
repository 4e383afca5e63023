// bug: an allocation fails, nobody looks, and nothing is computed; the twin looks, and takes less
// finds: call error unread
// line: MARK
// sanitizer: memcheck
// tolerates: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void number(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;
}

int main() {
  const int n = 64;
  const size_t everything = size_t(1) << 60;
  int* x = nullptr;
#ifdef FIXED
  if (cudaMalloc(&x, everything) != cudaSuccess) {
    check(cudaMalloc(&x, n * sizeof(int)));
  }
  number<<<1, n>>>(x, n);
#else
  cudaMalloc(&x, everything);  // <- bug
  if (x != nullptr) number<<<1, n>>>(x, n);
#endif
  std::vector<int> host(n);
  if (x != nullptr) check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[n - 1]);
  check(cudaFree(x));
}

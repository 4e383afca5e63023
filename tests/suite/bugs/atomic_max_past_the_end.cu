// bug: a function that takes an atomic maximum is called with one thread too many
// finds: out-of-bounds write global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

template <typename T>
__device__ void raise(T* at, T value) {
  atomicMax(at, value);  // <- bug
}

__global__ void raise_all(int* x, int n) {
  int i = threadIdx.x;
#ifdef FIXED
  if (i < n) raise(x + i, i);
#else
  if (i <= n) raise(x + i, i);
#endif
}

int main() {
  const int n = 48;
  int* x;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMemset(x, 0, n * sizeof(int)));
  raise_all<<<1, 64>>>(x, n);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 9) std::printf("%d\n", host[i]);
  check(cudaFree(x));
}

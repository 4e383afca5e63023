// bug: an index in bytes where one in elements is meant, gigabytes past the end
// finds: out-of-bounds write global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void mark(char* bytes, size_t step) {
  size_t i = threadIdx.x * step;
  bytes[i] = 1;  // <- bug
}

int main() {
  const int n = 64;
#ifdef FIXED
  const size_t step = 1;
#else
  const size_t step = size_t(1) << 34;
#endif
  char* bytes;
  check(cudaMalloc(&bytes, n));
  check(cudaMemset(bytes, 0, n));
  mark<<<1, n>>>(bytes, step);
  check(cudaGetLastError());
  std::vector<char> host(n);
  check(cudaMemcpy(host.data(), bytes, n, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 16) std::printf("%d\n", host[i]);
  check(cudaFree(bytes));
}

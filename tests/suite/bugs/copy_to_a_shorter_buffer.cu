// bug: an input of bytes is copied as if they were ints
// finds: copy past the end
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add_one(unsigned char* x) { ++x[threadIdx.x]; }

int main() {
  const int n = 128;
#ifdef FIXED
  const size_t size = n * sizeof(unsigned char);
#else
  const size_t size = n * sizeof(int);
#endif
  std::vector<unsigned char> host(n * sizeof(int), 9);
  unsigned char* x;
  check(cudaMalloc(&x, n));
  check(cudaMemset(x, 0, n));
  check(cudaMemcpy(x, host.data(), size, cudaMemcpyHostToDevice));  // <- bug
  add_one<<<1, n>>>(x);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), x, n, cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[0]);
  check(cudaFree(x));
}

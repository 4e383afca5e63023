// bug: a kernel gets the address of a host array
// finds: host pointer in kernel
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void twice(const int* in, int* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = 2 * in[i];  // <- bug
}

int main() {
  const int n = 64;
  std::vector<int> host(n, 4);
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
#ifdef FIXED
  twice<<<1, n>>>(in, out, n);
#else
  twice<<<1, n>>>(host.data(), out, n);
#endif
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d %d\n", host[0], host[n - 1]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

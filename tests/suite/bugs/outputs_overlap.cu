// bug: each thread writes two elements, the second of which is its neighbour's first
// finds: race global
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void pairs(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
  i *= 2;
#endif
  if (i + 1 >= n) return;
  out[i] = i;        // <- bug
  out[i + 1] = 100;  // <- bug
}

int main() {
  const int n = 256;
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
  pairs<<<4, 64>>>(out, n);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 51) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(out));
}

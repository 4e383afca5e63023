// bug: a __device__ array is written one element past its end
// finds: out-of-bounds write global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__device__ int table[24];

__global__ void fill(int count) {
  int i = threadIdx.x;
  if (i < count) table[i] = i * i;  // <- bug
}

int main() {
#ifdef FIXED
  fill<<<1, 32>>>(24);
#else
  fill<<<1, 32>>>(25);
#endif
  check(cudaGetLastError());
  std::vector<int> host(24);
  check(cudaMemcpyFromSymbol(host.data(), table, 24 * sizeof(int)));
  for (int i = 0; i < 24; i += 7) std::printf("%d\n", host[i]);
}

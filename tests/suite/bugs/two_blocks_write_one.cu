// bug: every block writes its number to the same element
// finds: race global
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void largest_block(int* out) {
  if (threadIdx.x != 0) return;
#ifdef FIXED
  atomicMax(out, blockIdx.x);
#else
  *out = blockIdx.x;  // <- bug
#endif
}

int main() {
  int *out, host = 0;
  check(cudaMalloc(&out, sizeof(int)));
  check(cudaMemset(out, 0, sizeof(int)));
  largest_block<<<50, 32>>>(out);
  check(cudaGetLastError());
  check(cudaMemcpy(&host, out, sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d\n", host);
#endif
  check(cudaFree(out));
}

// bug: the host reads a result straight from device memory
// finds: device pointer on host
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void answer(int* out) { *out = 42; }

int main() {
  int *out, host = 0;
  check(cudaMalloc(&out, sizeof(int)));
  answer<<<1, 1>>>(out);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  std::printf("computed\n");
  std::fflush(stdout);
#ifdef FIXED
  check(cudaMemcpy(&host, out, sizeof(int), cudaMemcpyDeviceToHost));
#else
  host = *out;  // <- bug
#endif
  std::printf("%d\n", host);
  check(cudaFree(out));
}

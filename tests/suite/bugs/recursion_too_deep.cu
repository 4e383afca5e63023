// bug: a function calls itself a million times, and the stack of the thread overflows
// finds: stack overflow
// line: none
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

// Its array is used after the call, so no compiler makes a loop of it.
__device__ int deeper(int n, const volatile int* before) {
  volatile int here[16];
  here[n % 16] = n + before[0];
  if (n > 0) deeper(n - 1, here);
  return here[n % 16];
}

__global__ void recurse(int* out, int n) {
  volatile int zero = 0;
  *out = deeper(n, &zero);
}

int main() {
#ifdef FIXED
  const int depth = 3;
#else
  const int depth = 1 << 20;
#endif
  int *out, host = 0;
  check(cudaMalloc(&out, sizeof(int)));
  recurse<<<1, 1>>>(out, depth);
  check(cudaGetLastError());
  check(cudaMemcpy(&host, out, sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host);
  check(cudaFree(out));
}

// bug: one shared array is overrun into another one of the same block
// finds: out-of-bounds write shared
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void two_tables(int* out, int count) {
  __shared__ int low[32], high[32];
  int i = threadIdx.x;
  if (i < 32) {
    low[i] = 0;
    high[i] = 100;
  }
  __syncthreads();
  int* first = low < high ? low : high;
  if (i < count) first[i] = i;  // <- bug
  __syncthreads();
  if (i < 32) out[i] = low[i] + high[i];
}

int main() {
  const int n = 32;
#ifdef FIXED
  const int count = 32;
#else
  const int count = 40;
#endif
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
  two_tables<<<1, 64>>>(out, count);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 7) std::printf("%d\n", host[i] % 100);
#endif
  check(cudaFree(out));
}

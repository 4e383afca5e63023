// bug: sums are added to memory that cudaMalloc gave and nobody set to zero
// finds: uninitialised read global
// line: MARK
// sanitizer: initcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void accumulate(const int* in, int* sums, int rows) {
  int i = threadIdx.x;
  for (int row = 0; row < rows; ++row) sums[i] += in[row * 64 + i];  // <- bug
}

int main() {
  const int rows = 10, n = rows * 64;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *sums;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&sums, 64 * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
#ifdef FIXED
  check(cudaMemset(sums, 0, 64 * sizeof(int)));
#endif
  accumulate<<<1, 64>>>(in, sums, rows);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), sums, 64 * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < 64; i += 9) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(in));
  check(cudaFree(sums));
}

// bug: a filter in constant memory is read past its end
// finds: out-of-bounds read constant
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__constant__ int weights[5];

__global__ void convolve(const int* in, int* out, int n, int radius) {
  int i = threadIdx.x, sum = 0;
  for (int j = -radius; j <= radius; ++j)
    if (i + j >= 0 && i + j < n) sum += in[i + j] * weights[j + radius];  // <- bug
  if (i < n) out[i] = sum;
}

int main() {
  const int n = 64;
#ifdef FIXED
  const int radius = 2;
#else
  const int radius = 3;
#endif
  const int filter[5] = {1, 4, 6, 4, 1};
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpyToSymbol(weights, filter, sizeof filter));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  convolve<<<1, n>>>(in, out, n, radius);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 21) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

// bug: a buffer of floats is cleared as if it held doubles
// finds: copy past the end
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add(float* x) { x[threadIdx.x] += 0.5f; }

int main() {
  const int n = 128;
  float* x;
  check(cudaMalloc(&x, n * sizeof(float)));
#ifdef FIXED
  check(cudaMemset(x, 0, n * sizeof(float)));
#else
  check(cudaMemset(x, 0, n * sizeof(double)));  // <- bug
#endif
  add<<<1, n>>>(x);
  check(cudaGetLastError());
  std::vector<float> host(n);
  check(cudaMemcpy(host.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%.9g\n", host[n - 1]);
#endif
  check(cudaFree(x));
}

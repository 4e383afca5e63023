// bug: the last block has more threads than there are elements left, and no guard
// finds: out-of-bounds read global, out-of-bounds write global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void twice(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
  if (i >= n) return;
#endif
  out[i] = 2 * in[i];  // <- bug
}

int main() {
  const int n = 300;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i + 0.5f;
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  check(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  twice<<<(n + 127) / 128, 128>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 50) std::printf("%.9g\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

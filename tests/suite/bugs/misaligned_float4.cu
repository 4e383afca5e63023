// bug: a float4 is read from an address that is no multiple of 16
// finds: misaligned access global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum_fours(const float* in, float* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  float4 v = *reinterpret_cast<const float4*>(in + 4 * i);  // <- bug
  out[i] = v.x + v.y + v.z + v.w;
}

int main() {
  const int n = 16;
#ifdef FIXED
  const int offset = 4;
#else
  const int offset = 1;
#endif
  std::vector<float> host(4 * n + 4, 1);
  float *in, *out;
  check(cudaMalloc(&in, host.size() * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  check(cudaMemcpy(in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  sum_fours<<<1, 32>>>(in + offset, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%.9g\n", host[n - 1]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

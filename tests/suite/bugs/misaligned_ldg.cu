// bug: float4 is loaded by __ldg from an address that 16 does not divide
// finds: misaligned access global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sums(const float* in, float* out, int n) {
  int i = threadIdx.x;
#ifdef FIXED
  const float* row = in + 4;
#else
  const float* row = in + 2;
#endif
  if (i >= n) return;
  float4 v = __ldg(reinterpret_cast<const float4*>(row) + i);  // <- bug
  out[i] = v.x + v.y + v.z + v.w;
}

int main() {
  const int n = 8;
  std::vector<float> host(4 * n + 4);
  for (int i = 0; i < 4 * n + 4; ++i) host[i] = i;
  float *in, *out;
  check(cudaMalloc(&in, host.size() * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  check(cudaMemcpy(in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  sums<<<1, 32>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 3) std::printf("%.9g\n", host[i]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

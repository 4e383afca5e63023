// bug: float4 loads of an array whose length is no multiple of four
// finds: out-of-bounds read global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const float* in, int n, float* out) {
  float total = 0;
  const float4* fours = reinterpret_cast<const float4*>(in);
#ifdef FIXED
  for (int i = 0; i < n / 4; ++i) {
#else
  for (int i = 0; i < (n + 3) / 4; ++i) {
#endif
    float4 v = fours[i];  // <- bug
    total += v.x + v.y + v.z + v.w;
  }
#ifdef FIXED
  for (int i = n / 4 * 4; i < n; ++i) total += in[i];
#endif
  *out = total;
}

int main() {
  const int n = 101;
  std::vector<float> host(n, 0.5f);
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, sizeof(float)));
  check(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  sum<<<1, 1>>>(in, n, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, sizeof(float), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%.9g\n", host[0]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

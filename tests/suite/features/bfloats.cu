// feature: bfloat16: conversions and arithmetic
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void compute(const float* in, __nv_bfloat16* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  __nv_bfloat16 x = __float2bfloat16(in[i]), y = __float2bfloat16(2.5f);
  out[i] = __hsub(__hmul_rn(x, y), __float2bfloat16(1));
}

int main() {
  const int n = 40;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = 0.30078125f * i - 5;
  float* in;
  __nv_bfloat16* out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(__nv_bfloat16)));
  check(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  compute<<<1, 64>>>(in, out, n);
  check(cudaGetLastError());
  std::vector<__nv_bfloat16> small(n);
  check(cudaMemcpy(small.data(), out, n * sizeof(__nv_bfloat16), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 3) std::printf("%a\n", __bfloat162float(small[i]));
  check(cudaFree(in));
  check(cudaFree(out));
}

// feature: float16: conversions, arithmetic, pairs
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void compute(const float* in, __half* out, float* wide, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  __half x = __float2half(in[i]), y = __float2half(1.5f);
  out[i] = __hadd(__hmul_rn(x, y), x);
  __half2 pair = __halves2half2(x, y);
  pair = __hadd2(pair, pair);
  wide[i] = __half2float(__hfma(x, y, y)) + __low2float(pair) + __high2float(pair);
}

int main() {
  const int n = 40;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = 0.30078125f * i - 5;
  float *in, *wide;
  __half* out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&wide, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(__half)));
  check(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  compute<<<1, 64>>>(in, out, wide, n);
  check(cudaGetLastError());
  std::vector<__half> halves(n);
  check(cudaMemcpy(halves.data(), out, n * sizeof(__half), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(host.data(), wide, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 3) std::printf("%a %a\n", __half2float(halves[i]), host[i]);
  check(cudaFree(in));
  check(cudaFree(wide));
  check(cudaFree(out));
}

// feature: functions and conversions whose results every device rounds alike
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void compute(const float* in, float* f, int* k, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  float x = in[i];
  f[6 * i] = sqrtf(fabsf(x));
  f[6 * i + 1] = 1 / (x + 100);
  f[6 * i + 2] = floorf(x) + ceilf(x) + truncf(x) + rintf(x);
  f[6 * i + 3] = fmaf(x, x, -1);
  f[6 * i + 4] = __fmul_rn(x, 0.1f);
  f[6 * i + 5] = fminf(fmaxf(x, -2), 2) + fmodf(x, 1.5f);
  k[3 * i] = __float2int_rn(x) * 10 + static_cast<int>(x);
  k[3 * i + 1] = __popc(__float_as_int(x)) + __clz(i) + __ffs(i);
  k[3 * i + 2] = __brev(i) ^ __mulhi(i * 100000, 1 << 20);
}

int main() {
  const int n = 30;
  std::vector<float> host(n), f(6 * n);
  std::vector<int> k(3 * n);
  for (int i = 0; i < n; ++i) host[i] = (i - 11) * 0.375f;
  float *in, *df;
  int* dk;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&df, f.size() * sizeof(float)));
  check(cudaMalloc(&dk, k.size() * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  compute<<<1, 32>>>(in, df, dk, n);
  check(cudaGetLastError());
  check(cudaMemcpy(f.data(), df, f.size() * sizeof(float), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(k.data(), dk, k.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 4) {
    for (int j = 0; j < 6; ++j) std::printf("%a ", f[6 * i + j]);
    std::printf("%d %d %d\n", k[3 * i], k[3 * i + 1], k[3 * i + 2]);
  }
  check(cudaFree(in));
  check(cudaFree(df));
  check(cudaFree(dk));
}

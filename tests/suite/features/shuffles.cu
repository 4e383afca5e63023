// feature: shuffles of all kinds, types and widths
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void exchange(int* out, float* floats, double* doubles) {
  const unsigned all = 0xffffffff;
  int i = threadIdx.x, lane = i % 32;
  out[8 * i] = __shfl_sync(all, i, 3);
  out[8 * i + 1] = __shfl_sync(all, i, lane + 5, 8);
  out[8 * i + 2] = __shfl_up_sync(all, i, 2);
  out[8 * i + 3] = __shfl_up_sync(all, i, 1, 16);
  out[8 * i + 4] = __shfl_down_sync(all, i, 4);
  out[8 * i + 5] = __shfl_down_sync(all, i, 3, 8);
  out[8 * i + 6] = __shfl_xor_sync(all, i, 9);
  out[8 * i + 7] = __shfl_xor_sync(all, i, 2, 4);
  floats[i] = __shfl_xor_sync(all, i + 0.5f, 1);
  doubles[i] = __shfl_down_sync(all, i * 0.25, 1);
  if (lane < 12) out[8 * i] += 1000 * __shfl_sync(0xfff, lane, 11 - lane);
}

int main() {
  const int n = 64;
  int* out;
  float* floats;
  double* doubles;
  check(cudaMalloc(&out, 8 * n * sizeof(int)));
  check(cudaMalloc(&floats, n * sizeof(float)));
  check(cudaMalloc(&doubles, n * sizeof(double)));
  exchange<<<1, n>>>(out, floats, doubles);
  check(cudaGetLastError());
  std::vector<int> host(8 * n);
  std::vector<float> float_host(n);
  std::vector<double> double_host(n);
  check(cudaMemcpy(host.data(), out, 8 * n * sizeof(int), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(float_host.data(), floats, n * sizeof(float), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(double_host.data(), doubles, n * sizeof(double), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 7) {
    for (int k = 0; k < 8; ++k) std::printf("%d ", host[8 * i + k]);
    std::printf("%.9g %.9g\n", float_host[i], double_host[i]);
  }
  check(cudaFree(out));
  check(cudaFree(floats));
  check(cudaFree(doubles));
}

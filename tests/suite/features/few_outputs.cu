// feature: threads without an element do nothing, in a line and in a square
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void columns(const float* in, float* out, int n) {
  int x = threadIdx.x;
  if (x >= n) return;
  float sum = 0;
  for (int y = 0; y < 40; ++y) sum += in[y * n + x];
  out[x] = sum;
}

__global__ void products(const float* in, float* out, int n) {
  int x = threadIdx.x, y = threadIdx.y;
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int k = 0; k < 40; ++k) sum += in[y * 40 + k] * in[x * 40 + k];
  out[n * n - 1 - y * n - x] = sum;
}

int main() {
  const int n = 3, size = 40 * n;
  std::vector<float> host(size);
  for (int i = 0; i < size; ++i) host[i] = i % 7;
  float *in, *out;
  check(cudaMalloc(&in, size * sizeof(float)));
  check(cudaMalloc(&out, n * n * sizeof(float)));
  check(cudaMemcpy(in, host.data(), size * sizeof(float), cudaMemcpyHostToDevice));
  columns<<<1, 128>>>(in, out, n);
  check(cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) std::printf("%.9g\n", host[i]);
  products<<<1, dim3(16, 16)>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n * n; ++i) std::printf("%.9g\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

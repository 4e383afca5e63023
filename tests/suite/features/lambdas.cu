// feature: lambdas in kernels, with and without captures
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

template <typename F>
__device__ int fold(int n, int start, F f) {
  int value = start;
  for (int i = 1; i <= n; ++i) value = f(value, i);
  return value;
}

__global__ void compute(int* out, int factor) {
  int i = threadIdx.x;
  auto add = [](int a, int b) { return a + b; };
  auto scaled = [factor, i](int a, int b) { return a + factor * b * i; };
  int calls = 0;
  auto counted = [&calls](int a, int b) {
    ++calls;
    return a > b ? a : b;
  };
  out[3 * i] = fold(i, 0, add);
  out[3 * i + 1] = fold(4, 0, scaled);
  out[3 * i + 2] = fold(i, 5, counted) * 100 + calls;
}

int main() {
  const int n = 12;
  int* out;
  check(cudaMalloc(&out, 3 * n * sizeof(int)));
  compute<<<1, n>>>(out, 3);
  check(cudaGetLastError());
  std::vector<int> host(3 * n);
  check(cudaMemcpy(host.data(), out, 3 * n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int value : host) std::printf("%d\n", value);
  check(cudaFree(out));
}

// feature: constant memory: numbers, arrays and structs, copied whole and in part
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

struct Line {
  float slope, offset;
};

__constant__ int powers[10];
__constant__ Line line;
__constant__ float half = 0.5f;

__global__ void compute(float* out) {
  int i = threadIdx.x;
  out[i] = half * powers[i % 10] + line.slope * i + line.offset;
}

int main() {
  const int n = 20;
  int numbers[10];
  for (int i = 0; i < 10; ++i) numbers[i] = 1 << i;
  Line values = {0.25f, 3};
  check(cudaMemcpyToSymbol(powers, numbers, 5 * sizeof(int)));
  check(cudaMemcpyToSymbol(powers, numbers + 5, 5 * sizeof(int), 5 * sizeof(int)));
  check(cudaMemcpyToSymbol(line, &values, sizeof values));
  float* out;
  check(cudaMalloc(&out, n * sizeof(float)));
  compute<<<1, n>>>(out);
  check(cudaGetLastError());
  std::vector<float> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (float value : host) std::printf("%.9g\n", value);
  check(cudaFree(out));
}

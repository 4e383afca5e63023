// feature: additions and maxima that are made of atomicCAS loops
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__device__ double add(double* address, double value) {
  unsigned long long* bits = reinterpret_cast<unsigned long long*>(address);
  unsigned long long old = *bits, expected;
  do {
    expected = old;
    old = atomicCAS(bits, expected, __double_as_longlong(value + __longlong_as_double(expected)));
  } while (old != expected);
  return __longlong_as_double(old);
}

__device__ void raise(float* address, float value) {
  int* bits = reinterpret_cast<int*>(address);
  int old = atomicAdd(bits, 0);
  while (value > __int_as_float(old)) {
    int seen = atomicCAS(bits, old, __float_as_int(value));
    if (seen == old) break;
    old = seen;
  }
}

__global__ void compute(double* sum, float* largest) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  add(sum, 0.5 * i);
  raise(largest, (i * 37 % 1000) * 0.25f);
}

int main() {
  double *sum, host_sum = 0;
  float *largest, host_largest = 0;
  check(cudaMalloc(&sum, sizeof(double)));
  check(cudaMalloc(&largest, sizeof(float)));
  check(cudaMemset(sum, 0, sizeof(double)));
  check(cudaMemset(largest, 0, sizeof(float)));
  compute<<<6, 64>>>(sum, largest);
  check(cudaGetLastError());
  check(cudaMemcpy(&host_sum, sum, sizeof(double), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(&host_largest, largest, sizeof(float), cudaMemcpyDeviceToHost));
  std::printf("%.9g %.9g\n", host_sum, host_largest);
  check(cudaFree(sum));
  check(cudaFree(largest));
}

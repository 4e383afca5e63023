// feature: atomics made of compare-and-swap, which begin with a plain read, and may end there
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__device__ float atomic_max(float* at, float value) {
  int* bits = reinterpret_cast<int*>(at);
  int old = *bits;
  while (value > __int_as_float(old)) {
    int assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(value));
    if (old == assumed) break;
  }
  return __int_as_float(old);
}

__device__ double atomic_add(double* at, double value) {
  unsigned long long* bits = reinterpret_cast<unsigned long long*>(at);
  unsigned long long old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}

__global__ void reduce(const float* in, float* largest, double* sum) {
  __shared__ float block_largest;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) block_largest = 0;
  __syncthreads();
  atomic_max(&block_largest, in[i]);
  atomic_add(sum, in[i]);
  __syncthreads();
  if (threadIdx.x == 0) atomic_max(largest, block_largest);
}

int main() {
  const int n = 256;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * 37 % 101;
  float *in, *largest, found;
  double *sum, total;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&largest, sizeof(float)));
  check(cudaMalloc(&sum, sizeof(double)));
  check(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemset(largest, 0, sizeof(float)));
  check(cudaMemset(sum, 0, sizeof(double)));
  reduce<<<4, n / 4>>>(in, largest, sum);
  check(cudaGetLastError());
  check(cudaMemcpy(&found, largest, sizeof found, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(&total, sum, sizeof total, cudaMemcpyDeviceToHost));
  std::printf("%.9g %.17g\n", found, total);
  check(cudaFree(in));
  check(cudaFree(largest));
  check(cudaFree(sum));
}

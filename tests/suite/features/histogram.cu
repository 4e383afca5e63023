// feature: a histogram with bins in shared memory, added to global ones
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

const int kBins = 16;

__global__ void count(const unsigned char* in, int n, int* bins) {
  __shared__ int local[kBins];
  if (threadIdx.x < kBins) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[in[i] % kBins], 1);
  __syncthreads();
  if (threadIdx.x < kBins) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

int main() {
  const int n = 5000;
  std::vector<unsigned char> bytes(n);
  for (int i = 0; i < n; ++i) bytes[i] = static_cast<unsigned char>(i * i / 7);
  unsigned char* in;
  int *bins, host[kBins];
  check(cudaMalloc(&in, n));
  check(cudaMalloc(&bins, sizeof host));
  check(cudaMemcpy(in, bytes.data(), n, cudaMemcpyHostToDevice));
  check(cudaMemset(bins, 0, sizeof host));
  count<<<4, 256>>>(in, n, bins);
  check(cudaGetLastError());
  check(cudaMemcpy(host, bins, sizeof host, cudaMemcpyDeviceToHost));
  for (int value : host) std::printf("%d\n", value);
  check(cudaFree(in));
  check(cudaFree(bins));
}

// feature: a convolution with a halo in shared memory and weights in constant memory
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

const int kRadius = 3, kBlock = 64;
__constant__ int weights[2 * kRadius + 1];

__global__ void convolve(const int* in, int* out, int n) {
  __shared__ int tile[kBlock + 2 * kRadius];
  int start = blockIdx.x * kBlock - kRadius;
  for (int k = threadIdx.x; k < kBlock + 2 * kRadius; k += kBlock)
    tile[k] = start + k >= 0 && start + k < n ? in[start + k] : 0;
  __syncthreads();
  int i = blockIdx.x * kBlock + threadIdx.x, sum = 0;
  for (int k = 0; k <= 2 * kRadius; ++k) sum += weights[k] * tile[threadIdx.x + k];
  if (i < n) out[i] = sum;
}

int main() {
  const int n = 200, filter[] = {1, -2, 3, 5, 3, -2, 1};
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i % 11;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpyToSymbol(weights, filter, sizeof filter));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  convolve<<<(n + kBlock - 1) / kBlock, kBlock>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 9) std::printf("%d\n", host[i]);
  std::printf("%d\n", host[n - 1]);
  check(cudaFree(in));
  check(cudaFree(out));
}

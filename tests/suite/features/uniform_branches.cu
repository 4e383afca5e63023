// feature: barriers in branches and loops that all threads of a block take alike
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void compute(const int* counts, int* out) {
  __shared__ int value;
  int sum = 0;
  if (threadIdx.x == 0) value = counts[blockIdx.x];
  __syncthreads();
  int rounds = value;
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    if (threadIdx.x == round % blockDim.x) value = round * 2;
    __syncthreads();
    sum += value;
    if (sum > 50) break;
  }
  if (blockIdx.x % 2 == 0) {
    __syncthreads();
    if (threadIdx.x == 1) value = 1000;
    __syncthreads();
    sum += value;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
  const int blocks = 5, threads = 48, n = blocks * threads;
  const int counts[blocks] = {0, 3, 5, 70, 9};
  int *in, *out;
  check(cudaMalloc(&in, sizeof counts));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, counts, sizeof counts, cudaMemcpyHostToDevice));
  compute<<<blocks, threads>>>(in, out);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 23) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

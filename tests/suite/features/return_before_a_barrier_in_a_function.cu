// feature: threads return before a function whose barrier stands further up, and in a loop
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__device__ int reversed(int* tile, int value, int count) {
  tile[threadIdx.x] = value;
  __syncthreads();
  return tile[count - 1 - threadIdx.x];
}

__global__ void reverse(const int* in, int* out, int n) {
  __shared__ int tile[64];
  int i = threadIdx.x;
  if (i >= n) return;
  int value = in[i] + 1;
  out[i] = reversed(tile, value, n);
}

__global__ void tree(const int* in, int* out) {
  __shared__ int part[64];
  int t = threadIdx.x;
  part[t] = in[t];
  for (int half = 32; half > 0; half /= 2) {
    __syncthreads();
    if (t >= half) return;
    part[t] += part[t + half];
  }
  out[0] = part[0];
}

int main() {
  const int n = 64;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reverse<<<1, n>>>(in, out, 50);
  check(cudaMemcpy(host.data(), out, 50 * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 50; i += 7) std::printf("%d\n", host[i]);
  tree<<<1, n>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[0]);
  check(cudaFree(in));
  check(cudaFree(out));
}

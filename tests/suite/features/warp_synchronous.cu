// feature: a warp adds up values in shared memory, kept in step by __syncwarp
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const int* in, int* out) {
  __shared__ int part[128];
  int t = threadIdx.x, lane = t % 32, value = in[blockIdx.x * 128 + t];
  part[t] = value;
  __syncwarp();
  for (int half = 16; half > 0; half /= 2) {
    if (lane < half) part[t] += part[t + half];
    __syncwarp();
  }
  if (lane == 0) out[blockIdx.x * 4 + t / 32] = part[t];
}

int main() {
  const int blocks = 2, n = blocks * 128;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * 3 % 50;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, blocks * 4 * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum<<<blocks, 128>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, blocks * 4 * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < blocks * 4; ++i) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

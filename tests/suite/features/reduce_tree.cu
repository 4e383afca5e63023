// feature: a sum by a tree in shared memory, in two launches
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const float* in, float* out, int n) {
  __shared__ float part[256];
  int t = threadIdx.x, i = blockIdx.x * 512 + t;
  part[t] = (i < n ? in[i] : 0) + (i + 256 < n ? in[i + 256] : 0);
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

int main() {
  const int n = 3000, blocks = (n + 511) / 512;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = 0.25f * (i % 100);
  float *in, *parts, *total;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&parts, blocks * sizeof(float)));
  check(cudaMalloc(&total, sizeof(float)));
  check(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  sum<<<blocks, 256>>>(in, parts, n);
  check(cudaGetLastError());
  sum<<<1, 256>>>(parts, total, blocks);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), total, sizeof(float), cudaMemcpyDeviceToHost));
  std::printf("%.9g\n", host[0]);
  check(cudaFree(in));
  check(cudaFree(parts));
  check(cudaFree(total));
}

// feature: copies into shared memory on the side, in two stages
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum_tiles(const int* in, int tiles, int* out) {
  __shared__ int stage[2][64];
  int t = threadIdx.x, sum = 0;
  __pipeline_memcpy_async(&stage[0][t], &in[t], sizeof(int));
  __pipeline_commit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles)
      __pipeline_memcpy_async(&stage[(tile + 1) % 2][t], &in[(tile + 1) * 64 + t], sizeof(int));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += stage[tile % 2][63 - t] * (tile + 1);
    __syncthreads();
  }
  out[t] = sum;
}

int main() {
  const int tiles = 5, n = tiles * 64;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 29;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, 64 * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum_tiles<<<1, 64>>>(in, tiles, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, 64 * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; i += 9) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

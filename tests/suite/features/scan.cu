// feature: a running sum in three kernels: of blocks, of their totals, and both together
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

const int kBlock = 128;

__global__ void scan_blocks(const int* in, int* out, int* totals, int n) {
  __shared__ int sums[2][kBlock];
  int t = threadIdx.x, i = blockIdx.x * kBlock + t, now = 0;
  sums[0][t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int step = 1; step < kBlock; step *= 2) {
    sums[1 - now][t] = sums[now][t] + (t >= step ? sums[now][t - step] : 0);
    now = 1 - now;
    __syncthreads();
  }
  if (i < n) out[i] = sums[now][t];
  if (t == kBlock - 1) totals[blockIdx.x] = sums[now][t];
}

__global__ void scan_totals(int* totals, int count) {
  if (threadIdx.x != 0) return;
  for (int i = 1; i < count; ++i) totals[i] += totals[i - 1];
}

__global__ void add_totals(int* out, const int* totals, int n) {
  int i = blockIdx.x * kBlock + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] += totals[blockIdx.x - 1];
}

int main() {
  const int n = 1000, blocks = (n + kBlock - 1) / kBlock;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 13;
  int *in, *out, *totals;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMalloc(&totals, blocks * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  scan_blocks<<<blocks, kBlock>>>(in, out, totals, n);
  check(cudaGetLastError());
  scan_totals<<<1, 32>>>(totals, blocks);
  check(cudaGetLastError());
  add_totals<<<blocks, kBlock>>>(out, totals, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 99; i < n; i += 100) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
  check(cudaFree(totals));
}

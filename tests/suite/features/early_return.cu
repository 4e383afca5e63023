// feature: threads without an element return before a barrier, which a real GPU allows
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void reverse_in_blocks(const int* in, int* out, int n) {
  __shared__ int tile[64];
  int t = threadIdx.x, start = blockIdx.x * 64, i = start + t;
  if (i >= n) return;
  tile[t] = in[i];
  __syncthreads();
  int count = n - start < 64 ? n - start : 64;
  out[i] = tile[count - 1 - t];
}

int main() {
  const int n = 150;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reverse_in_blocks<<<3, 64>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 11) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

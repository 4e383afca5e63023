// feature: a kernel fills the front of a buffer, of which the host copies all and reads the front
// tolerates: initcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void keep_even(const int* in, int* out, int* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 2 == 0) out[atomicAdd(count, 1)] = in[i];
}

int main() {
  const int n = 200;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * 3;
  int *in, *out, *count, kept;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMalloc(&count, sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  check(cudaMemset(count, 0, sizeof(int)));
  keep_even<<<2, 128>>>(in, out, count, n);
  check(cudaGetLastError());
  check(cudaMemcpy(&kept, count, sizeof(int), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  int sum = 0;
  for (int i = 0; i < kept; ++i) sum += host[i];
  for (int i = kept; i < n; ++i) host[i] = 1;
  for (int i = kept; i < n; ++i) sum += host[i];
  std::printf("%d %d\n", kept, sum);
  check(cudaFree(in));
  check(cudaFree(out));
  check(cudaFree(count));
}

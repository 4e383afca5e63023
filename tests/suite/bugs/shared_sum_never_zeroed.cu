// bug: a shared sum gets atomic additions, but never a zero to begin with
// finds: uninitialised read shared
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const int* in, int* out) {
  __shared__ int total;
#ifdef FIXED
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
#endif
  atomicAdd(&total, in[threadIdx.x]);  // <- bug
  __syncthreads();
  if (threadIdx.x == 0) *out = total;
}

int main() {
  const int n = 128;
  std::vector<int> host(n, 3);
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum<<<1, n>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d\n", host[0]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

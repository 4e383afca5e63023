// bug: a function with a barrier is called only by the threads that have an element
// finds: barrier not reached
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__device__ int neighbour(int* tile, int value) {
  tile[threadIdx.x] = value;
  __syncthreads();  // <- bug
  return tile[threadIdx.x ^ 1];
}

__global__ void swap(const int* in, int* out, int n) {
  __shared__ int tile[64];
  int i = blockIdx.x * 64 + threadIdx.x;
#ifdef FIXED
  int value = neighbour(tile, i < n ? in[i] : 0);
  if (i < n) out[i] = value;
#else
  if (i < n) out[i] = neighbour(tile, in[i]);
#endif
}

int main() {
  const int n = 100;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * 5;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  swap<<<2, 64>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 11) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

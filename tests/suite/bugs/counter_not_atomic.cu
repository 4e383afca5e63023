// bug: all threads add to one counter without atomics
// finds: race global
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void count_even(const int* in, int n, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 2 == 0)
#ifdef FIXED
    atomicAdd(count, 1);
#else
    ++*count;  // <- bug
#endif
}

int main() {
  const int n = 1000;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i + i % 3;
  int *in, *count;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&count, sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  check(cudaMemset(count, 0, sizeof(int)));
  count_even<<<8, 128>>>(in, n, count);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), count, sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d\n", host[0]);
#endif
  check(cudaFree(in));
  check(cudaFree(count));
}

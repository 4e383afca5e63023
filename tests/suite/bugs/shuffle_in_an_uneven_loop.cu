// bug: the last round of a loop has lanes for half of the warp only, and a function adds up 32
// finds: shuffle from an absent lane
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__device__ int warp_sum(int value) {
  for (int bit = 16; bit > 0; bit /= 2) value += __shfl_xor_sync(0xffffffff, value, bit);  // <- bug
  return value;
}

__global__ void rounds(const int* in, int* out, int n) {
  int sum = 0;
#ifdef FIXED
  for (int start = 0; start < n; start += 32) {
    int i = start + threadIdx.x;
    sum += warp_sum(i < n ? in[i] : 0);
  }
#else
  for (int i = threadIdx.x; i < n; i += 32) sum += warp_sum(in[i]);
#endif
  if (threadIdx.x == 0) *out = sum;
}

int main() {
  const int n = 80;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = 3 * i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  rounds<<<1, 32>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d\n", host[0]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

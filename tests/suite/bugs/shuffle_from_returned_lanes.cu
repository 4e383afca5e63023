// bug: lanes without an element return, and the others add up all 32
// finds: shuffle from an absent lane
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const int* in, int* out, int n) {
  int i = threadIdx.x;
#ifdef FIXED
  int value = i < n ? in[i] : 0;
#else
  if (i >= n) return;
  int value = in[i];
#endif
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_down_sync(0xffffffff, value, step);  // <- bug
  if (i == 0) *out = value;
}

int main() {
  const int n = 20;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum<<<1, 32>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d\n", host[0]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

// bug: a block of 40 threads adds up its second warp as if there were 32 lanes
// finds: shuffle from an absent lane
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void largest(const int* in, int* out, int n) {
  int t = threadIdx.x, value = in[t];
#ifdef FIXED
  const int lanes = t < 32 ? 32 : n - 32;
  for (int step = 16; step > 0; step /= 2) {
    int other = __shfl_down_sync(0xffffffff, value, step);
    if (t % 32 + step < lanes) value = other > value ? other : value;
  }
#else
  for (int step = 16; step > 0; step /= 2) {
    int other = __shfl_down_sync(0xffffffff, value, step);  // <- bug
    if (other > value) value = other;
  }
#endif
  if (t % 32 == 0) out[t / 32] = value;
}

int main() {
  const int n = 40;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * 7 % 41;
  int *in, *out, found[2];
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, sizeof found));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  largest<<<1, n>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d %d\n", found[0], found[1]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

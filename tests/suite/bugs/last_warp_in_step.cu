// bug: the last warp of a sum counts on its lanes going in step, as before Volta
// finds: race shared
// line: MARK
// sanitizer: racecheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

#ifdef FIXED
__device__ void last_warp(int* part, int t) {
  for (int half = 32; half > 0; half /= 2) {
    int other = part[t + half];
    __syncwarp();
    part[t] += other;
    __syncwarp();
  }
}
#else
__device__ void last_warp(volatile int* part, int t) {
  part[t] += part[t + 32];  // <- bug
  part[t] += part[t + 16];  // <- bug
  part[t] += part[t + 8];   // <- bug
  part[t] += part[t + 4];   // <- bug
  part[t] += part[t + 2];   // <- bug
  part[t] += part[t + 1];   // <- bug
}
#endif

__global__ void sum(const int* in, int* out) {
  __shared__ int part[128];
  int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  if (t < 64) part[t] += part[t + 64];
  __syncthreads();
  if (t < 32) last_warp(part, t);
  if (t == 0) *out = part[0];
}

int main() {
  const int n = 128;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
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

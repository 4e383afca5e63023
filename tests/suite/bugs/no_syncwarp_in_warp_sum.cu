// bug: the lanes of a warp exchange values in shared memory without __syncwarp
// finds: race shared
// line: MARK
// sanitizer: racecheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const int* in, int* out) {
  __shared__ volatile int part[64];
  int i = threadIdx.x;
  part[i] = in[i];
  part[i + 32] = 0;
  for (int half = 16; half > 0; half /= 2) {
#ifdef FIXED
    __syncwarp();
#endif
    int other = part[i + half];  // <- bug
#ifdef FIXED
    __syncwarp();
#endif
    part[i] = part[i] + other;  // <- bug
  }
  if (i == 0) *out = part[0];
}

int main() {
  const int n = 32;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i;
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

// bug: the steps of a tree reduction are not kept apart
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
  __shared__ int part[256];
  int i = threadIdx.x;
  part[i] = in[blockIdx.x * 256 + i];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (i < half) part[i] += part[i + half];  // <- bug
#ifdef FIXED
    __syncthreads();
#endif
  }
  if (i == 0) out[blockIdx.x] = part[0];
}

int main() {
  const int blocks = 3, n = blocks * 256;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, blocks * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum<<<blocks, 256>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < blocks; ++i) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

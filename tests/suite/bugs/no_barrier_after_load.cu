// bug: a tile is read before other warps have loaded their part of it
// finds: race shared
// line: MARK
// sanitizer: racecheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void reverse(const int* in, int* out) {
  __shared__ int tile[256];
  int i = threadIdx.x;
  tile[i] = in[i];  // <- bug
#ifdef FIXED
  __syncthreads();
#endif
  out[i] = tile[255 - i];  // <- bug
}

int main() {
  const int n = 256;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reverse<<<1, n>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 51) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

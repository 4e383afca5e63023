// bug: the last thread writes behind the block's only array
// finds: out-of-bounds write shared
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void shift(const int* in, int* out) {
  __shared__ int tile[64];
  int i = threadIdx.x;
#ifdef FIXED
  tile[(i + 1) % 64] = in[i];
#else
  tile[i + 1] = in[i];  // <- bug
  if (i == 63) tile[0] = in[i];
#endif
  __syncthreads();
  out[i] = tile[i];
}

int main() {
  const int n = 64;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = 7 * i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  shift<<<1, n>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 9) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

// bug: the edges of a shared tile are read, but only its inside was loaded
// finds: uninitialised read shared
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void smooth(const int* in, int* out) {
  __shared__ int tile[66];
  int i = threadIdx.x;
  tile[i + 1] = in[i];
#ifdef FIXED
  if (i == 0) tile[0] = tile[65] = 0;
#endif
  __syncthreads();
  out[i] = tile[i] + tile[i + 1] + tile[i + 2];  // <- bug
}

int main() {
  const int n = 64;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  smooth<<<1, n>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 1; i < n - 1; i += 20) std::printf("%d\n", host[i]);
#ifdef FIXED
  std::printf("%d %d\n", host[0], host[n - 1]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

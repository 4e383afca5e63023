// bug: each warp waits at a barrier of its own branch
// finds: barriers of two warps
// line: MARK
// sanitizer: synccheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void branches(int* out) {
  __shared__ int tile[64];
  int i = threadIdx.x;
#ifdef FIXED
  tile[i] = i < 32 ? i : 2 * i;
  __syncthreads();
#else
  if (i < 32) {
    tile[i] = i;
    __syncthreads();  // <- bug
  } else {
    tile[i] = 2 * i;
    __syncthreads();  // <- bug
  }
#endif
  out[i] = tile[63 - i];
}

int main() {
  const int n = 64;
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
  branches<<<1, n>>>(out);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 9) std::printf("%d\n", host[i]);
  check(cudaFree(out));
}

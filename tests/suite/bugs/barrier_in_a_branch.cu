// bug: half of a warp skips a barrier and goes on to its end
// finds: barrier not reached
// line: MARK
// sanitizer: synccheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void first_half(int* out) {
  __shared__ int tile[32];
  int i = threadIdx.x;
  if (i < 16) tile[i] = i + 1;
#ifdef FIXED
  __syncthreads();
  if (i < 16) out[i] = tile[15 - i];
#else
  if (i < 16) {
    __syncthreads();  // <- bug
    out[i] = tile[15 - i];
  }
#endif
  if (i >= 16) out[i] = -i;
}

int main() {
  const int n = 32;
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
  first_half<<<1, n>>>(out);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 5) std::printf("%d\n", host[i]);
  check(cudaFree(out));
}

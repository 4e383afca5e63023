// bug: the lanes of every warp take both branches in turn
// finds: advice: divergent warp
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void work(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
#ifdef FIXED
  bool odd = threadIdx.x / 32 % 2 == 1;
#else
  bool odd = threadIdx.x % 2 == 1;
#endif
  out[i] = 0;
  if (odd)
    for (int k = 0; k < 100; ++k) out[i] += k ^ i;  // <- bug
  else
    for (int k = 0; k < 100; ++k) out[i] -= k | i;  // <- bug
}

int main() {
  const int n = 16384;
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
  work<<<n / 256, 256>>>(out, n);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 2999) std::printf("%d\n", host[i]);
  check(cudaFree(out));
}

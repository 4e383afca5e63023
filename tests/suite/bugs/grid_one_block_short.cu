// bug: the grid is rounded down, and the host reads the elements that no thread wrote
// finds: unwritten result
// line: MARK
// sanitizer: initcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void square(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i * i;
}

int main() {
  const int n = 1000;
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
#ifdef FIXED
  square<<<(n + 255) / 256, 256>>>(out, n);
#else
  square<<<n / 256, 256>>>(out, n);
#endif
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));  // <- bug
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += host[i] != i * i;
#ifdef FIXED
  std::printf("%d are wrong\n", wrong);
#else
  std::printf("# %d are wrong\n", wrong);
#endif
  check(cudaFree(out));
}

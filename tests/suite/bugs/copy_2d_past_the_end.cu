// bug: rows are copied to a device matrix that has the width without the padding
// finds: copy past the end
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

int main() {
  const int width = 60, height = 10;
#ifdef FIXED
  const size_t pitch = width;
#else
  const size_t pitch = 64;
#endif
  std::vector<char> host(width * height);
  for (int i = 0; i < width * height; ++i) host[i] = i % 100;
  char* x;
  check(cudaMalloc(&x, width * height));
  check(cudaMemset(x, 0, width * height));
  check(cudaMemcpy2D(x, pitch, host.data(), width, width, height,  // <- bug
                     cudaMemcpyHostToDevice));
  check(cudaMemcpy(host.data(), x, width * height, cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[59]);
  check(cudaFree(x));
}

// bug: the host writes to a buffer that an asynchronous copy may still read
// finds: unsynchronised access
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

int main() {
  const int n = 20000;
  int *x, *host;
  cudaStream_t stream;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMallocHost(&host, n * sizeof(int)));
  for (int i = 0; i < n; ++i) host[i] = i;
  check(cudaStreamCreate(&stream));
  check(cudaMemcpyAsync(x, host, n * sizeof(int), cudaMemcpyHostToDevice, stream));
#ifdef FIXED
  check(cudaStreamSynchronize(stream));
#endif
  for (int i = 0; i < n; ++i) host[i] = 0;  // <- bug
  check(cudaStreamSynchronize(stream));
  check(cudaMemcpy(host, x, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d\n", host[n - 1]);
#endif
  check(cudaStreamDestroy(stream));
  check(cudaFreeHost(host));
  check(cudaFree(x));
}

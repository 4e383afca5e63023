// bug: the host reads a buffer that an asynchronous copy may not have filled yet
// finds: unsynchronised access
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void square(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i * i;
}

int main() {
  const int n = 20000;
  int *x, *host;
  cudaStream_t stream;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMallocHost(&host, n * sizeof(int)));
  for (int i = 0; i < n; ++i) host[i] = -1;
  check(cudaStreamCreate(&stream));
  square<<<(n + 127) / 128, 128, 0, stream>>>(x, n);
  check(cudaGetLastError());
  check(cudaMemcpyAsync(host, x, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
#ifdef FIXED
  check(cudaStreamSynchronize(stream));
  std::printf("%d\n", host[n - 1]);
#else
  int early = host[n - 1];  // <- bug
  std::printf("# %d\n", early);
  check(cudaStreamSynchronize(stream));
#endif
  check(cudaStreamDestroy(stream));
  check(cudaFreeHost(host));
  check(cudaFree(x));
}

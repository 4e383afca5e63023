// bug: an event behind a copy is recorded, and nobody waits for it
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
  cudaEvent_t copied;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMallocHost(&host, n * sizeof(int)));
  for (int i = 0; i < n; ++i) host[i] = -1;
  check(cudaEventCreate(&copied));
  square<<<(n + 127) / 128, 128>>>(x, n);
  check(cudaGetLastError());
  check(cudaMemcpyAsync(host, x, n * sizeof(int), cudaMemcpyDeviceToHost));
  check(cudaEventRecord(copied));
#ifdef FIXED
  check(cudaEventSynchronize(copied));
#endif
  int value = host[n - 1];  // <- bug
#ifdef FIXED
  std::printf("%d\n", value);
#else
  std::printf("# %d\n", value);
#endif
  check(cudaDeviceSynchronize());
  check(cudaEventDestroy(copied));
  check(cudaFreeHost(host));
  check(cudaFree(x));
}

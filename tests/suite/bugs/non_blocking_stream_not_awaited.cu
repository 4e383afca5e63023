// bug: the default stream does not wait for a non-blocking one, and copies its result
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
  int* x;
  cudaStream_t stream;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMemset(x, 0, n * sizeof(int)));
  check(cudaDeviceSynchronize());
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  square<<<(n + 127) / 128, 128, 0, stream>>>(x, n);
  check(cudaGetLastError());
#ifdef FIXED
  check(cudaStreamSynchronize(stream));
#endif
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));  // <- bug
#ifdef FIXED
  std::printf("%d\n", host[n - 1]);
#endif
  check(cudaStreamSynchronize(stream));
  check(cudaStreamDestroy(stream));
  check(cudaFree(x));
}

// feature: events: time, and one stream that waits for another
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void fill(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;
}

__global__ void twice(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * x[i];
}

int main() {
  const int n = 5000, blocks = (n + 255) / 256;
  int *x, *out;
  cudaStream_t first, second;
  cudaEvent_t start, filled, end;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  check(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  check(cudaEventCreate(&start));
  check(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  check(cudaEventCreate(&end));
  check(cudaEventRecord(start, first));
  fill<<<blocks, 256, 0, first>>>(x, n);
  check(cudaGetLastError());
  check(cudaEventRecord(filled, first));
  check(cudaStreamWaitEvent(second, filled, 0));
  twice<<<blocks, 256, 0, second>>>(x, out, n);
  check(cudaGetLastError());
  check(cudaEventRecord(end, second));
  check(cudaEventSynchronize(end));
  float milliseconds = -1;
  check(cudaEventElapsedTime(&milliseconds, start, end));
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d %d\n", host[n - 1], milliseconds >= 0);
  check(cudaEventDestroy(start));
  check(cudaEventDestroy(filled));
  check(cudaEventDestroy(end));
  check(cudaStreamDestroy(first));
  check(cudaStreamDestroy(second));
  check(cudaFree(x));
  check(cudaFree(out));
}

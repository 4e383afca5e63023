// feature: streams: independent work, order within one, blocking and non-blocking ones
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void step(int* x, int n, int factor, int added) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * factor + added;
}

int main() {
  const int n = 1000, count = 3;
  int *x[count], *host[count];
  cudaStream_t streams[count];
  for (int s = 0; s < count; ++s) {
    check(cudaStreamCreateWithFlags(&streams[s], s == 2 ? cudaStreamNonBlocking : 0));
    check(cudaMalloc(&x[s], n * sizeof(int)));
    check(cudaMallocHost(&host[s], n * sizeof(int)));
    for (int i = 0; i < n; ++i) host[s][i] = i + s;
  }
  for (int s = 0; s < count; ++s) {
    check(cudaMemcpyAsync(x[s], host[s], n * sizeof(int), cudaMemcpyHostToDevice, streams[s]));
    step<<<8, 128, 0, streams[s]>>>(x[s], n, 2, 1);
    check(cudaGetLastError());
    step<<<8, 128, 0, streams[s]>>>(x[s], n, 3, s);
    check(cudaGetLastError());
    check(cudaMemcpyAsync(host[s], x[s], n * sizeof(int), cudaMemcpyDeviceToHost, streams[s]));
  }
  for (int s = 0; s < count; ++s) check(cudaStreamSynchronize(streams[s]));
  for (int s = 0; s < count; ++s) std::printf("%d %d\n", host[s][1], host[s][n - 1]);
  for (int s = 0; s < count; ++s) {
    check(cudaStreamDestroy(streams[s]));
    check(cudaFree(x[s]));
    check(cudaFreeHost(host[s]));
  }
}

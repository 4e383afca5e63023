// feature: four threads of the host, each with a stream, buffers and launches of its own
#include <cuda_runtime.h>

#include <cstdio>
#include <thread>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void increment(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) ++x[i];
}

static void work(int id, int* wrong) {
  const int n = 20000, turns = 3;
  int *host, *device;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  check(cudaMalloc(&device, n * sizeof(int)));
  check(cudaMallocHost(&host, n * sizeof(int)));
  for (int i = 0; i < n; ++i) host[i] = i + id;
  for (int turn = 0; turn < turns; ++turn) {
    check(cudaMemcpyAsync(device, host, n * sizeof(int), cudaMemcpyHostToDevice, stream));
    increment<<<(n + 255) / 256, 256, 0, stream>>>(device, n);
    check(cudaGetLastError());
    check(cudaMemcpyAsync(host, device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    check(cudaStreamSynchronize(stream));
  }
  *wrong = 0;
  for (int i = 0; i < n; ++i) *wrong += host[i] != i + id + turns;
  check(cudaFree(device));
  check(cudaFreeHost(host));
  check(cudaStreamDestroy(stream));
}

int main() {
  int wrong[4];
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) threads.emplace_back(work, id, wrong + id);
  for (std::thread& thread : threads) thread.join();
  for (int id = 0; id < 4; ++id) std::printf("%d\n", wrong[id]);
}

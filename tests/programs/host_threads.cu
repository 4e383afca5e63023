// Shows: several threads of the host, each with its stream and its memory.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "headers/error_check.h"

__global__ void work(const int* in, int* out, int n, int factor) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = in[i] * factor + i;
}

class Worker {
 public:
  Worker(int id, int n) : id(id), n(n) {
    checkCudaErrors(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    checkCudaErrors(cudaMallocHost(&host, n * sizeof(int)));
    checkCudaErrors(cudaMalloc(&in, n * sizeof(int)));
    checkCudaErrors(cudaMalloc(&out, n * sizeof(int)));
  }
  ~Worker() {
    cudaStreamDestroy(stream);
    cudaFreeHost(host);
    cudaFree(in);
    cudaFree(out);
  }
  int run(int rounds) {
    int wrong = 0;
    for (int r = 0; r < rounds; ++r) {
      for (int i = 0; i < n; ++i) host[i] = i % (id + 2) + r;
      checkCudaErrors(cudaMemcpyAsync(in, host, n * sizeof(int), cudaMemcpyHostToDevice, stream));
      work<<<4, 64, 0, stream>>>(in, out, n, id + 1);
      checkCudaErrors(cudaGetLastError());
      checkCudaErrors(cudaMemcpyAsync(host, out, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
      checkCudaErrors(cudaStreamSynchronize(stream));
      for (int i = 0; i < n; ++i) wrong += host[i] != (i % (id + 2) + r) * (id + 1) + i;
    }
    return wrong;
  }

 private:
  const int id, n;
  cudaStream_t stream;
  int *host, *in, *out;
};

int main() {
  const int threads = 4, rounds = 5;
  std::atomic<int> wrong(0);
  std::mutex mutex;
  int finished = 0;
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      checkCudaErrors(cudaSetDevice(0));
      Worker worker(t, 700 + 50 * t);
      wrong += worker.run(rounds);
      std::lock_guard<std::mutex> guard(mutex);
      ++finished;
    });
  for (std::thread& thread : pool) thread.join();
  checkCudaErrors(cudaDeviceSynchronize());
  std::printf("%d threads finished, %d results wrong\n", finished, wrong.load());
  return wrong != 0 || finished != threads;
}

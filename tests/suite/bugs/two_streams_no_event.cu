// bug: one stream reads what another one writes, and no event orders them
// finds: unsynchronised access, race global
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
  if (i < n) x[i] = i * i;  // <- bug
}

__global__ void add_one(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + 1;  // <- bug
}

int main() {
  const int n = 20000, blocks = (n + 127) / 128;
  int *x, *out;
  cudaStream_t first, second;
  cudaEvent_t written;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemset(x, 0, n * sizeof(int)));
  check(cudaDeviceSynchronize());
  check(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  check(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  check(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
  square<<<blocks, 128, 0, first>>>(x, n);  // <- bug
  check(cudaGetLastError());
#ifdef FIXED
  check(cudaEventRecord(written, first));
  check(cudaStreamWaitEvent(second, written, 0));
#endif
  add_one<<<blocks, 128, 0, second>>>(x, out, n);  // <- bug
  check(cudaGetLastError());
  check(cudaStreamSynchronize(first));
  check(cudaStreamSynchronize(second));
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d\n", host[n - 1]);
#endif
  check(cudaEventDestroy(written));
  check(cudaStreamDestroy(first));
  check(cudaStreamDestroy(second));
  check(cudaFree(x));
  check(cudaFree(out));
}

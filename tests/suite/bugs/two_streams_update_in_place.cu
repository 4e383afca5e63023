// bug: a kernel updates in place what a kernel in another stream still reads
// finds: unsynchronised access
// line: MARK
// sanitizer: none
// prints: unrecorded
#include <cuda_runtime.h>

#include <cstdio>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void twice(const float* w, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * w[i];  // <- bug
}

__global__ void update(float* w, float rate, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) w[i] -= rate * w[i];  // <- bug
}

int main() {
  const int n = 3000, blocks = (n + 127) / 128;
  float *w, *out, last = 0;
  check(cudaMalloc(&w, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  check(cudaMemset(w, 0, n * sizeof(float)));
  check(cudaDeviceSynchronize());
  cudaStream_t reads, writes;
  cudaEvent_t has_read;
  check(cudaStreamCreateWithFlags(&reads, cudaStreamNonBlocking));
  check(cudaStreamCreateWithFlags(&writes, cudaStreamNonBlocking));
  check(cudaEventCreateWithFlags(&has_read, cudaEventDisableTiming));
  twice<<<blocks, 128, 0, reads>>>(w, out, n);
  check(cudaEventRecord(has_read, reads));
#ifdef FIXED
  check(cudaStreamWaitEvent(writes, has_read, 0));
#endif
  update<<<blocks, 128, 0, writes>>>(w, 0.5f, n);
  check(cudaDeviceSynchronize());
  check(cudaMemcpy(&last, out + n - 1, sizeof(float), cudaMemcpyDeviceToHost));
  std::printf("%g\n", last);
  check(cudaEventDestroy(has_read));
  check(cudaStreamDestroy(reads));
  check(cudaStreamDestroy(writes));
  check(cudaFree(w));
  check(cudaFree(out));
}

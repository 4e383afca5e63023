// bug: a loop with a barrier has fewer rounds for some threads, which go on to the next one
// finds: different barriers, barrier not reached
// line: MARK
// sanitizer: synccheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void running(const int* in, int n, int* out) {
  __shared__ int tile[64];
  int t = threadIdx.x, sum = 0;
#ifdef FIXED
  for (int start = 0; start < n; start += 64) {
    tile[t] = start + t < n ? in[start + t] : 0;
#else
  for (int i = t; i < n; i += 64) {
    tile[t] = in[i];
#endif
    __syncthreads();  // <- bug
    sum += tile[t];
  }
  tile[t] = sum;
  __syncthreads();  // <- bug
  out[t] = tile[t ^ 1];
}

int main() {
  const int n = 112;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, 64 * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  running<<<1, 64>>>(in, n, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, 64 * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; i += 9) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

// bug: blocks of one warp take 40 KB of shared memory each
// finds: advice: low occupancy
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

#ifdef FIXED
const int kThreads = 256, kShared = 1024;
#else
const int kThreads = 32, kShared = 10240;
#endif

__global__ void reverse(const int* in, int* out) {
  __shared__ int tile[kShared];
  int start = blockIdx.x * kThreads, i = threadIdx.x;
  tile[i] = in[start + i];
  __syncthreads();
  out[start + i] = tile[kThreads - 1 - i];
}

int main() {
  const int n = 65536;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reverse<<<n / kThreads, kThreads>>>(in, out);  // <- bug
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[kThreads - 1]);
  check(cudaFree(in));
  check(cudaFree(out));
}

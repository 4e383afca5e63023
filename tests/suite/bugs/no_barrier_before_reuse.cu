// bug: the next tile is loaded while other warps still read the last one
// finds: race shared
// line: MARK
// sanitizer: racecheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum_all_pairs(const int* in, int n, int* out) {
  __shared__ int tile[128];
  int i = threadIdx.x, sum = 0;
  for (int start = 0; start < n; start += 128) {
    tile[i] = in[start + i];  // <- bug
    __syncthreads();
    for (int j = 0; j < 128; ++j) sum += tile[j] * (i + 1);  // <- bug
#ifdef FIXED
    __syncthreads();
#endif
  }
  out[i] = sum;
}

int main() {
  const int n = 512;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 17;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, 128 * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum_all_pairs<<<1, 128>>>(in, n, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, 128 * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < 128; i += 25) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

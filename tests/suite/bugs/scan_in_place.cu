// bug: a running sum is updated in place while neighbours still read the old values
// finds: race shared
// line: MARK
// sanitizer: racecheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void scan(const int* in, int* out) {
  __shared__ int sums[128];
  int i = threadIdx.x;
  sums[i] = in[i];
  __syncthreads();
  for (int step = 1; step < 128; step *= 2) {
#ifdef FIXED
    int before = i >= step ? sums[i - step] : 0;
    __syncthreads();
    sums[i] += before;
#else
    if (i >= step) sums[i] += sums[i - step];  // <- bug
#endif
    __syncthreads();
  }
  out[i] = sums[i];
}

int main() {
  const int n = 128;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 10;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  scan<<<1, n>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 25) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

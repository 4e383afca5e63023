// bug: whole warps skip a barrier and go on to a later one
// finds: different barriers, barrier not reached
// line: MARK
// sanitizer: synccheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void two_steps(int* out) {
  __shared__ int first[96], second[96];
  int i = threadIdx.x;
  first[i] = i;
#ifdef FIXED
  __syncthreads();
#else
  if (i < 32) __syncthreads();  // <- bug
#endif
  second[i] = 2 * first[i];
  __syncthreads();  // <- bug
  out[i] = second[i];
}

int main() {
  const int n = 96;
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
  two_steps<<<1, n>>>(out);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 19) std::printf("%d\n", host[i]);
  check(cudaFree(out));
}

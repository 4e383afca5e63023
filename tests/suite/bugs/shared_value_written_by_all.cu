// bug: every thread writes its own number to one shared variable
// finds: race shared
// line: MARK
// sanitizer: racecheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void choose(int* out) {
  __shared__ int chosen;
#ifdef FIXED
  if (threadIdx.x == 0) chosen = threadIdx.x;
#else
  chosen = threadIdx.x;  // <- bug
#endif
  __syncthreads();
  out[threadIdx.x] = chosen;
}

int main() {
  const int n = 128;
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
  choose<<<1, n>>>(out);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d %d\n", host[0], host[n - 1]);
#endif
  check(cudaFree(out));
}

// bug: both branches shuffle with a mask of all lanes, half of which are in the other one
// finds: lanes missing
// line: MARK
// sanitizer: synccheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void halves(int* out) {
  int lane = threadIdx.x, value = lane * lane;
#ifdef FIXED
  const unsigned low = 0x0000ffff, high = 0xffff0000;
#else
  const unsigned low = 0xffffffff, high = 0xffffffff;
#endif
  if (lane < 16)
    value += __shfl_xor_sync(low, value, 1);  // <- bug
  else
    value -= __shfl_xor_sync(high, value, 2);  // <- bug
  out[lane] = value;
}

int main() {
  const int n = 32;
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
  halves<<<1, n>>>(out);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 5) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(out));
}

// bug: all lanes vote with a mask of the even ones
// finds: lane not in its mask
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void any_is_large(const int* in, int* out) {
  int lane = threadIdx.x;
  unsigned even = __ballot_sync(0xffffffff, lane % 2 == 0);
#ifdef FIXED
  out[lane] = lane % 2 == 0 ? __any_sync(even, in[lane] > 90) : 0;
#else
  out[lane] = __any_sync(even, in[lane] > 90);  // <- bug
#endif
}

int main() {
  const int n = 32;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  any_is_large<<<1, n>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 5) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

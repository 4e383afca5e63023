// feature: votes of a warp and of a block
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void vote(unsigned* out) {
  const unsigned all = 0xffffffff;
  unsigned i = threadIdx.x;
  unsigned odd = __ballot_sync(all, i % 2), any = __any_sync(all, i == 40);
  unsigned low = __all_sync(all, i < 32);
  unsigned count = __syncthreads_count(i % 5 == 0);
  unsigned every = __syncthreads_and(i < 64), one = __syncthreads_or(i == 63);
  out[i] = odd ^ (any << 1) ^ (low << 2) ^ (count << 8) ^ ((every != 0) << 20) ^ ((one != 0) << 21);
  if (i % 32 < 10) out[i] ^= __ballot_sync(0x3ff, i % 3 == 0) << 10;
}

int main() {
  const int n = 64;
  unsigned* out;
  check(cudaMalloc(&out, n * sizeof(unsigned)));
  vote<<<1, n>>>(out);
  check(cudaGetLastError());
  std::vector<unsigned> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 5) std::printf("%08x\n", host[i]);
  check(cudaFree(out));
}

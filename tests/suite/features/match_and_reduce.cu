// feature: lanes that have the same value, and reductions by instruction
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void match(unsigned* out) {
  const unsigned all = 0xffffffff;
  unsigned i = threadIdx.x;
  int same = 0;
  unsigned* mine = out + 6 * i;
  mine[0] = __match_any_sync(all, i / 5);
  mine[1] = __match_all_sync(all, 7, &same) + same;
  mine[2] = __match_all_sync(all, i / 31, &same) + same;
  mine[3] = __reduce_add_sync(all, i) + __reduce_max_sync(all, i * 3 % 32);
  mine[4] = __reduce_or_sync(all, 1u << (i % 7)) ^ __reduce_and_sync(all, i | 96);
  mine[5] = static_cast<unsigned>(__reduce_min_sync(all, 10 - static_cast<int>(i)));
}

int main() {
  const int n = 32;
  unsigned* out;
  check(cudaMalloc(&out, 6 * n * sizeof(unsigned)));
  match<<<1, n>>>(out);
  check(cudaGetLastError());
  std::vector<unsigned> host(6 * n);
  check(cudaMemcpy(host.data(), out, 6 * n * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 6 * n; ++i) std::printf("%08x%c", host[i], i % 6 == 5 ? '\n' : ' ');
  check(cudaFree(out));
}

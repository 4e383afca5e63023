// feature: cooperative groups: blocks, tiles, tiles of tiles, threads of one branch
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

namespace cg = cooperative_groups;

__global__ void tiles(int* out) {
  __shared__ int values[64];
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto eight = cg::tiled_partition<8>(warp);
  int i = block.thread_rank(), sum = i;
  for (int step = eight.size() / 2; step > 0; step /= 2) sum += eight.shfl_xor(sum, step);
  values[i] = sum;
  block.sync();
  int* mine = out + 6 * i;
  mine[0] = values[63 - i];
  mine[1] = warp.thread_rank() * 100 + warp.meta_group_rank();
  mine[2] = eight.shfl_down(i, 3);
  mine[3] = static_cast<int>(eight.ballot(i % 2));
  mine[4] = eight.any(i == 12) * 10 + eight.all(i < 32);
  mine[5] = 0;
  if (i % 3 == 0) {
    cg::coalesced_group some = cg::coalesced_threads();
    mine[5] = some.size() * 100 + some.thread_rank();
  }
}

int main() {
  const int n = 64;
  int* out;
  check(cudaMalloc(&out, 6 * n * sizeof(int)));
  tiles<<<1, n>>>(out);
  check(cudaGetLastError());
  std::vector<int> host(6 * n);
  check(cudaMemcpy(host.data(), out, 6 * n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 6 * n; ++i) std::printf("%d%c", host[i], i % 6 == 5 ? '\n' : ' ');
  check(cudaFree(out));
}

// feature: reductions and scans over tiles, and a tile's barrier around shared memory
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

namespace cg = cooperative_groups;

__global__ void reduce(const int* in, int* out) {
  __shared__ int values[64];
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  int i = threadIdx.x, value = in[i];
  int* mine = out + 5 * i;
  mine[0] = cg::reduce(tile, value, cg::plus<int>());
  mine[1] = cg::reduce(tile, value, cg::greater<int>());
  mine[2] = cg::inclusive_scan(tile, value, cg::plus<int>());
  mine[3] = cg::exclusive_scan(tile, value, cg::plus<int>());
  values[i] = value;
  tile.sync();
  mine[4] = values[i ^ 15];
}

int main() {
  const int n = 64;
  std::vector<int> host(5 * n);
  for (int i = 0; i < n; ++i) host[i] = i * 7 % 23;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, 5 * n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reduce<<<1, n>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, 5 * n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 5 * n; ++i) std::printf("%d%c", host[i], i % 5 == 4 ? '\n' : ' ');
  check(cudaFree(in));
  check(cudaFree(out));
}

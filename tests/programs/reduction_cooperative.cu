// Shows: cooperative groups: blocks, tiles of templates, coalesced groups.
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace cg = cooperative_groups;
using namespace cooperative_groups;

static void HandleError(cudaError_t err, const char *file, int line) {
  if (err != cudaSuccess) {
    std::cerr << cudaGetErrorString(err) << " in " << file << " at line " << line << "\n";
    exit(EXIT_FAILURE);
  }
}
#define HANDLE_ERROR(err) (HandleError(err, __FILE__, __LINE__))

__device__ int sumInShared(thread_group g, int *x, int val) {
  int lane = g.thread_rank();
  for (int i = g.size() / 2; i > 0; i /= 2) {
    x[lane] = val;
    g.sync();
    if (lane < i) val += x[lane + i];
    g.sync();
  }
  return val;
}

template <int tileSize>
__device__ int sumOfTile(cg::thread_block_tile<tileSize> tile, int value) {
  for (int i = tile.size() / 2; i > 0; i /= 2) value += tile.shfl_down(value, i);
  return value;
}

__global__ void sumBlock(const int *in, int *sums, int *tileSums) {
  extern __shared__ int workspace[];
  cg::thread_block block = cg::this_thread_block();
  int value = in[block.group_index().x * block.size() + block.thread_rank()];
  int total = sumInShared(block, workspace, value);
  if (block.thread_rank() == 0) sums[blockIdx.x] = total;
  block.sync();

  cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
  int part = sumOfTile<16>(tile, value);
  if (tile.thread_rank() == 0)
    tileSums[blockIdx.x * tile.meta_group_size() + tile.meta_group_rank()] = part;
}

// One atomic operation for all lanes that found something.
__device__ int atomicAggInc(int *counter) {
  coalesced_group active = coalesced_threads();
  int first = 0;
  if (active.thread_rank() == 0) first = atomicAdd(counter, (int)active.size());
  return active.shfl(first, 0) + active.thread_rank();
}

__global__ void collectPositive(const int *in, int n, int *out, int *count) {
  auto grid = this_grid();
  int i = grid.thread_rank();
  if (i < n && in[i] > 0) out[atomicAggInc(count)] = in[i];
}

int main() {
  const int block = 128, blocks = 6, n = block * blocks;
  int h[n], sums[blocks], tiles[n / 16], gold = 0, positive = 0;
  for (int i = 0; i < n; ++i) {
    h[i] = (i * 61) % 37 - 18;
    gold += h[i];
    if (h[i] > 0) positive += h[i];
  }
  int *d_in, *d_sums, *d_tiles, *d_out, *d_count;
  HANDLE_ERROR(cudaMalloc(&d_in, sizeof(h)));
  HANDLE_ERROR(cudaMalloc(&d_out, sizeof(h)));
  HANDLE_ERROR(cudaMalloc(&d_sums, sizeof(sums)));
  HANDLE_ERROR(cudaMalloc(&d_tiles, sizeof(tiles)));
  HANDLE_ERROR(cudaMalloc(&d_count, sizeof(int)));
  HANDLE_ERROR(cudaMemcpy(d_in, h, sizeof(h), cudaMemcpyHostToDevice));
  HANDLE_ERROR(cudaMemset(d_count, 0, sizeof(int)));
  sumBlock<<<blocks, block, block * sizeof(int)>>>(d_in, d_sums, d_tiles);
  collectPositive<<<blocks, block>>>(d_in, n - 5, d_out, d_count);
  HANDLE_ERROR(cudaGetLastError());
  int count = 0;
  HANDLE_ERROR(cudaMemcpy(sums, d_sums, sizeof(sums), cudaMemcpyDeviceToHost));
  HANDLE_ERROR(cudaMemcpy(tiles, d_tiles, sizeof(tiles), cudaMemcpyDeviceToHost));
  HANDLE_ERROR(cudaMemcpy(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost));
  int *found = new int[count];
  HANDLE_ERROR(cudaMemcpy(found, d_out, count * sizeof(int), cudaMemcpyDeviceToHost));

  int total = 0, tileTotal = 0, collected = 0;
  for (int s : sums) total += s;
  for (int t : tiles) tileTotal += t;
  for (int i = 0; i < count; ++i) collected += found[i];
  for (int i = n - 5; i < n; ++i) positive -= h[i] > 0 ? h[i] : 0;
  std::cout << "blocks " << total << ", tiles " << tileTotal << ", positive " << collected << " of "
            << count << std::endl;
  delete[] found;
  for (int *p : {d_in, d_out, d_sums, d_tiles, d_count}) HANDLE_ERROR(cudaFree(p));
  return total == gold && tileTotal == gold && collected == positive ? 0 : 1;
}

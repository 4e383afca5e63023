// Cooperative groups: blocks, tiles, threads of one branch, and what they bring together.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <functional>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void describe_block(unsigned* out) {
  cg::thread_block block = cg::this_thread_block();
  cg::grid_group grid = cg::this_grid();
  unsigned* mine = out + grid.thread_rank() * 7;
  mine[0] = block.thread_rank();
  mine[1] = block.size() + 1000 * block.num_threads();
  mine[2] = block.group_index().x + 10 * block.group_index().y;
  mine[3] = block.thread_index().x + 10 * block.thread_index().y;
  mine[4] = block.group_dim().x + 10 * block.group_dim().y + 100 * block.group_dim().z;
  mine[5] = grid.size();
  mine[6] = cg::thread_rank(block);
}

CASE(a_block_and_a_grid_know_their_threads) {
  const dim3 grid(3, 2), block(5, 4, 2);
  Device<unsigned> out(6 * 40 * 7);
  describe_block<<<grid, block>>>(out.data);
  std::vector<unsigned> got = out.get();
  for (unsigned i = 0; i < 240; ++i) {
    const unsigned *mine = &got[i * 7], b = i / 40, t = i % 40;
    CHECK(mine[0] == t && mine[1] == 40040 && mine[2] == b % 3 + 10 * (b / 3));
    CHECK(mine[3] == t % 5 + 10 * (t / 5 % 4) && mine[4] == 245 && mine[5] == 240 && mine[6] == t);
  }
}

// The sum of a group in shared memory, as NVIDIA's introduction has it.
__device__ int reduce_sum(cg::thread_group g, int* temp, int value) {
  int lane = g.thread_rank();
  for (int i = g.size() / 2; i > 0; i /= 2) {
    temp[lane] = value;
    g.sync();
    if (lane < i) value += temp[lane + i];
    g.sync();
  }
  return value;
}

__global__ void sum_by_groups(const int* in, int* out) {
  extern __shared__ int temp[];
  cg::thread_block block = cg::this_thread_block();
  int value = in[block.thread_rank()];
  int all = reduce_sum(block, temp, value);
  auto tile = cg::tiled_partition(block, 16);
  int sixteen = reduce_sum(tile, temp + block.thread_rank() / 16 * 16, value);
  auto quarter = cg::tiled_partition(tile, 4);
  int four = reduce_sum(quarter, temp + block.thread_rank() / 4 * 4, value);
  if (block.thread_rank() == 0) out[0] = all;
  if (tile.thread_rank() == 0) out[1 + block.thread_rank() / 16] = sixteen;
  if (quarter.thread_rank() == 0) out[9 + block.thread_rank() / 4] = four;
}

CASE(any_group_can_be_an_argument) {
  std::vector<int> in(128);
  for (int i = 0; i < 128; ++i) in[i] = i * i;
  Device<int> from(in), to(9 + 32);
  sum_by_groups<<<1, 128, 128 * sizeof(int)>>>(from.data, to.data);
  auto sum = [&](int first, int count) {
    int result = 0;
    for (int i = first; i < first + count; ++i) result += in[i];
    return result;
  };
  std::vector<int> got = to.get();
  CHECK(got[0] == sum(0, 128));
  for (int i = 0; i < 8; ++i) CHECK(got[1 + i] == sum(i * 16, 16));
  for (int i = 0; i < 32; ++i) CHECK(got[9 + i] == sum(i * 4, 4));
}

template <unsigned size>
__global__ void use_tile(int* out) {
  auto block = cg::this_thread_block();
  cg::thread_block_tile<size> tile = cg::tiled_partition<size>(block);
  int *mine = out + block.thread_rank() * 12, value = block.thread_rank() * 3;
  mine[0] = tile.thread_rank();
  mine[1] = tile.size() * 100 + tile.num_threads();
  mine[2] = tile.meta_group_rank();
  mine[3] = tile.meta_group_size();
  mine[4] = tile.shfl(value, 1);
  mine[5] = tile.shfl_up(value, 1);
  mine[6] = tile.shfl_down(value, 2);
  mine[7] = tile.shfl_xor(value, size / 2);
  mine[8] = tile.any(block.thread_rank() == 9) != 0;
  mine[9] = tile.all(block.thread_rank() >= size) != 0;
  mine[10] = tile.ballot(block.thread_rank() % 3 == 0);
  tile.sync();
  mine[11] = cg::reduce(tile, value, cg::plus<int>());
}

template <unsigned size>
void check_tile() {
  const int threads = 96, n = size;
  Device<int> out(threads * 12);
  use_tile<size><<<1, threads>>>(out.data);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  std::vector<int> got = out.get();
  for (int t = 0; t < threads; ++t) {
    const int *mine = &got[t * 12], rank = t % n, first = t - rank;
    CHECK(mine[0] == rank && mine[1] == 101 * n && mine[2] == t / n && mine[3] == threads / n);
    CHECK(mine[4] == 3 * (first + 1 % n));
    CHECK(mine[5] == 3 * (rank > 0 ? t - 1 : t));
    CHECK(mine[6] == 3 * (rank + 2 < n ? t + 2 : t));
    CHECK(mine[7] == 3 * (first + (rank ^ (n / 2))));
    CHECK(mine[8] == (first <= 9 && 9 < first + n) && mine[9] == (first >= n));
    unsigned ballot = 0;
    for (int r = 0; r < n; ++r) ballot |= ((first + r) % 3 == 0 ? 1u : 0u) << r;
    CHECK(static_cast<unsigned>(mine[10]) == ballot);
    CHECK(mine[11] == 3 * (n * first + n * (n - 1) / 2));
  }
}

CASE(tiles_of_every_size_exchange_and_vote) {
  check_tile<2>();
  check_tile<4>();
  check_tile<8>();
  check_tile<16>();
  check_tile<32>();
}

__global__ void nested_tiles(int* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto half = cg::tiled_partition<16>(warp);
  int* mine = out + threadIdx.x * 4;
  mine[0] = half.meta_group_rank() * 10 + half.meta_group_size();
  mine[1] = cg::reduce(half, static_cast<int>(threadIdx.x), cg::greater<int>());
  mine[2] = cg::reduce(half, static_cast<int>(threadIdx.x), cg::less<int>());
  mine[3] = cg::reduce(warp, 1u << warp.thread_rank(), cg::bit_or<unsigned>()) == 0xffffffffu;
}

CASE(a_tile_is_cut_into_tiles) {
  Device<int> out(64 * 4);
  nested_tiles<<<1, 64>>>(out.data);
  std::vector<int> got = out.get();
  for (int t = 0; t < 64; ++t) {
    CHECK(got[t * 4] == t % 32 / 16 * 10 + 2 && got[t * 4 + 1] == t / 16 * 16 + 15);
    CHECK(got[t * 4 + 2] == t / 16 * 16 && got[t * 4 + 3] == 1);
  }
}

__global__ void sums_of_doubles(const double* in, double* out, double* running) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  double value = in[threadIdx.x];
  out[threadIdx.x] = cg::reduce(tile, value, cg::plus<double>());
  running[threadIdx.x] = cg::inclusive_scan(tile, value);
  running[64 + threadIdx.x] = cg::exclusive_scan(tile, value, cg::plus<double>());
}

CASE(sums_and_running_sums_are_those_of_the_tile) {
  std::vector<double> in(64);
  for (int i = 0; i < 64; ++i) in[i] = i + 0.25;
  Device<double> from(in), to(64), running(128);
  sums_of_doubles<<<1, 64>>>(from.data, to.data, running.data);
  for (int t = 0; t < 64; ++t) {
    double all = 0, below = 0;
    for (int i = t / 32 * 32; i < t / 32 * 32 + 32; ++i) all += in[i], below += i < t ? in[i] : 0;
    CHECK(to.get()[t] == all);
    CHECK(running.get()[t] == below + in[t] && running.get()[64 + t] == below);
  }
}

__global__ void both_branches(int* out) {
  int *mine = out + threadIdx.x * 6, t = threadIdx.x;
  if (t % 3 == 0) {
    cg::coalesced_group g = cg::coalesced_threads();
    mine[0] = g.size(), mine[1] = g.thread_rank(), mine[2] = g.shfl(t, 1);
    mine[3] = g.shfl_down(t, 1), mine[4] = g.ballot(t % 2),
    mine[5] = cg::reduce(g, t, cg::plus<int>());
  } else {
    cg::coalesced_group g = cg::coalesced_threads();
    mine[0] = g.size(), mine[1] = g.thread_rank(), mine[2] = g.shfl(t, 1);
    mine[3] = g.shfl_down(t, 1), mine[4] = g.ballot(t % 2),
    mine[5] = cg::reduce(g, t, cg::plus<int>());
  }
}

CASE(threads_of_one_branch_are_a_group) {
  Device<int> out(64 * 6);
  both_branches<<<1, 64>>>(out.data);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  std::vector<int> got = out.get();
  for (int t = 0; t < 64; ++t) {
    std::vector<int> members;
    for (int i = t / 32 * 32; i < t / 32 * 32 + 32; ++i)
      if ((i % 3 == 0) == (t % 3 == 0)) members.push_back(i);
    int rank = 0, sum = 0, ballot = 0, count = members.size();
    for (int r = 0; r < count; ++r) {
      if (members[r] == t) rank = r;
      sum += members[r];
      ballot |= members[r] % 2 << r;
    }
    const int* mine = &got[t * 6];
    CHECK(mine[0] == count && mine[1] == rank && mine[2] == members[1]);
    CHECK(mine[3] == members[rank + 1 < count ? rank + 1 : rank]);
    CHECK(mine[4] == ballot && mine[5] == sum);
  }
}

// Nothing but the call, which compilers like to make one of.
__global__ void ask_in_both_branches(unsigned* out) {
  if (threadIdx.x % 2)
    out[threadIdx.x] = __activemask();
  else
    out[threadIdx.x] = __activemask();
}

CASE(equal_branches_stay_apart) {
  Device<unsigned> out(32);
  ask_in_both_branches<<<1, 32>>>(out.data);
  for (int t = 0; t < 32; ++t) CHECK(out.get()[t] == (t % 2 ? 0xaaaaaaaau : 0x55555555u));
}

__device__ int add_together(int* counter) {
  auto g = cg::coalesced_threads();
  int before = 0;
  if (g.thread_rank() == 0) before = atomicAdd(counter, static_cast<int>(g.size()));
  return g.shfl(before, 0) + g.thread_rank();
}

__global__ void compact(const int* in, int n, int* out, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 5 == 0) out[add_together(count)] = in[i];
}

CASE(one_atomic_serves_a_branch) {
  const int n = 1025;
  std::vector<int> in(n);
  for (int i = 0; i < n; ++i) in[i] = i;
  Device<int> from(in), to(n), count(std::vector<int>{0});
  compact<<<9, 128>>>(from.data, n, to.data, count.data);
  CHECK(count.get()[0] == 205);
  std::vector<bool> seen(n);
  for (int i = 0; i < 205; ++i) {
    int value = to.get()[i];
    CHECK(value % 5 == 0 && value >= 0 && value < n && !seen[value]);
    seen[value] = true;
  }
}

__global__ void partitions(int* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int t = threadIdx.x;
  auto same = cg::labeled_partition(warp, t % 5);
  auto small = cg::binary_partition(warp, t % 32 < 10);
  out[t * 3] = same.size() * 100 + same.thread_rank();
  out[t * 3 + 1] = small.size() * 100 + small.thread_rank();
  out[t * 3 + 2] = cg::reduce(same, t, cg::plus<int>());
}

CASE(a_warp_is_cut_by_labels) {
  Device<int> out(32 * 3);
  partitions<<<1, 32>>>(out.data);
  for (int t = 0; t < 32; ++t) {
    int size = t % 5 < 2 ? 7 : 6, sum = 0;
    for (int i = t % 5; i < 32; i += 5) sum += i;
    CHECK(out.get()[t * 3] == size * 100 + t / 5 && out.get()[t * 3 + 2] == sum);
    CHECK(out.get()[t * 3 + 1] == (t < 10 ? 1000 + t : 2200 + t - 10));
  }
}

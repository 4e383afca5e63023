// Barriers, and what the lanes of a warp exchange.
#include "check.h"

__global__ void sum(const int* in, int* out) {
  __shared__ int partial[1024];
  partial[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

CASE(a_barrier_waits_for_all_threads) {
  for (int threads : {1, 2, 32, 64, 256, 1024}) {
    std::vector<int> in(7 * threads);
    for (size_t i = 0; i < in.size(); ++i) in[i] = i;
    Device<int> from(in), to(7);
    sum<<<7, threads>>>(from.data, to.data);
    for (int b = 0; b < 7; ++b) CHECK(to.get()[b] == threads * (2 * b * threads + threads - 1) / 2);
  }
}

__global__ void some_leave(int stay, int* out) {
  __shared__ int value;
  if (threadIdx.x >= stay) return;
  if (threadIdx.x == 0) value = 7;
  __syncthreads();
  out[threadIdx.x] = value;
  __syncthreads();
}

CASE(a_thread_that_returns_early_counts_as_arrived) {
  for (int stay : {1, 31, 100, 255, 256}) {
    Device<int> out(std::vector<int>(256, 0));
    some_leave<<<1, 256>>>(stay, out.data);
    CHECK(cudaGetLastError() == cudaSuccess);
    for (int i = 0; i < 256; ++i) CHECK(out.get()[i] == (i < stay ? 7 : 0));
  }
}

__global__ void late_leavers(int* out) {
  // The last to arrive at the second barrier is a thread that returns.
  __syncthreads();
  if (threadIdx.x >= 50) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

CASE(a_thread_that_returns_while_others_wait_lets_them_go) {
  Device<int> out(std::vector<int>(100, 0));
  late_leavers<<<1, 100>>>(out.data);
  CHECK(cudaGetLastError() == cudaSuccess);
  for (int i = 0; i < 100; ++i) CHECK(out.get()[i] == (i < 50));
}

__global__ void votes(int* out) {
  int i = threadIdx.x;
  int count = __syncthreads_count(i % 3 == 0);
  int all = __syncthreads_and(i < 100), none = __syncthreads_and(i < 99);
  int one = __syncthreads_or(i == 50), no = __syncthreads_or(i > 100);
  out[i] = count * 10000 + (all != 0) * 1000 + (none != 0) * 100 + (one != 0) * 10 + (no != 0);
}

CASE(barriers_count_votes) {
  Device<int> out(100);
  votes<<<1, 100>>>(out.data);
  for (int value : out.get()) CHECK(value == 34 * 10000 + 1000 + 10);
}

__global__ void shuffles(float* f, double* d, int* i) {
  const unsigned all = 0xffffffff;
  int lane = threadIdx.x % 32;
  float sum = threadIdx.x;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(all, sum, step);
  f[threadIdx.x] = sum;
  d[threadIdx.x] = __shfl_down_sync(all, threadIdx.x + 0.5, 1);
  i[threadIdx.x * 4] = __shfl_up_sync(all, lane, 3, 8);
  i[threadIdx.x * 4 + 1] = __shfl_sync(all, lane, 5, 16);
  i[threadIdx.x * 4 + 2] = __shfl_sync(all, lane, 40);
  i[threadIdx.x * 4 + 3] = __shfl_down_sync(all, lane, 2, 4);
}

CASE(lanes_exchange_values) {
  Device<float> f(64);
  Device<double> d(64);
  Device<int> i(256);
  shuffles<<<1, 64>>>(f.data, d.data, i.data);
  for (int t = 0; t < 64; ++t) {
    int lane = t % 32;
    CHECK(f.get()[t] == (t < 32 ? 496 : 1520));
    CHECK(d.get()[t] == (lane == 31 ? t : t + 1) + 0.5);
    CHECK(i.get()[t * 4] == (lane % 8 < 3 ? lane : lane - 3));
    CHECK(i.get()[t * 4 + 1] == lane / 16 * 16 + 5);
    CHECK(i.get()[t * 4 + 2] == 8);
    CHECK(i.get()[t * 4 + 3] == (lane % 4 < 2 ? lane + 2 : lane));
  }
}

__global__ void ballots(unsigned* out) {
  out[0] = __ballot_sync(0xffffffff, threadIdx.x % 2);
  out[1] = __any_sync(0xffffffff, threadIdx.x == 9);
  out[2] = __all_sync(0xffffffff, threadIdx.x == 9);
  out[3] = __all_sync(0xffffffff, threadIdx.x < 32);
  __syncwarp();
  if (threadIdx.x < 16) out[4] = __ballot_sync(0xffff, 1);
  if (threadIdx.x >= 16) out[5] = __ballot_sync(0xffff0000, threadIdx.x > 16);
  if (threadIdx.x % 2) out[6] = __activemask();
}

CASE(lanes_vote) {
  Device<unsigned> out(7);
  ballots<<<1, 32>>>(out.data);
  CHECK(out.get() == (std::vector<unsigned>{0xaaaaaaaa, 1, 0, 1, 0xffff, 0xfffe0000, 0xaaaaaaaa}));
}

__global__ void short_warp(int* out) {
  out[threadIdx.x] = __shfl_xor_sync(0xffffffff, threadIdx.x, 1);
}

CASE(lanes_that_do_not_exist_are_not_waited_for) {
  Device<int> out(10);
  short_warp<<<1, 10>>>(out.data);
  for (int i = 0; i < 10; ++i) CHECK(out.get()[i] == (i ^ 1));
}

__global__ void half_waits(int* out) {
  if (threadIdx.x < 40)
    __syncthreads();
  else
    __syncwarp();
  out[threadIdx.x] = 1;
}

CASE(a_deadlock_ends_the_launch) {
  Device<int> out(64);
  half_waits<<<2, 64>>>(out.data);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  half_waits<<<2, 64>>>(out.data);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
}

__global__ void deep(int* out) {
  // Every thread has its own stack, also while it waits.
  int values[500];
  for (int i = 0; i < 500; ++i) values[i] = i * threadIdx.x;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 500; ++i) sum += values[i];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

CASE(local_variables_survive_barriers) {
  Device<int> out(8 * 1024);
  deep<<<8, 1024>>>(out.data);
  for (int i = 0; i < 8 * 1024; ++i) CHECK(out.get()[i] == 124750 * (i % 1024));
}

// A butterfly over all lanes, of which those from `stay` on have returned.
__global__ void extremes(unsigned stay, float* out) {
  float sum = threadIdx.x, low = sum, high = sum;
  if (threadIdx.x >= stay) return;
  for (int step = 16; step > 0; step /= 2) {
    sum += __shfl_xor_sync(0xffffffff, sum, step);
    low = fminf(low, __shfl_xor_sync(0xffffffff, low, step));
    high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, step));
  }
  if (threadIdx.x == 0) out[0] = sum, out[1] = low, out[2] = high;
}

CASE(what_a_lane_that_has_returned_gives_shows) {
  Device<float> out(3);
  extremes<<<1, 32>>>(32, out.data);
  CHECK(out.get()[0] == 496 && out.get()[1] == 0 && out.get()[2] == 31);
  extremes<<<1, 32>>>(20, out.data);
  CHECK(out.get()[0] != 190 && out.get()[1] < 0 && out.get()[2] > 19);
}

// Lanes that are not there give values to lanes whose own nobody asks for.
__global__ void sum_of_few(int* out) {
  int sum = threadIdx.x;
  for (int step = blockDim.x / 2; step > 0; step /= 2)
    sum += __shfl_down_sync(0xffffffff, sum, step);
  if (threadIdx.x == 0) out[0] = sum;
}

CASE(a_block_of_half_a_warp_adds_up) {
  for (int threads : {1, 2, 16}) {
    Device<int> out(1);
    sum_of_few<<<1, threads>>>(out.data);
    CHECK(out.get()[0] == threads * (threads - 1) / 2);
  }
}

__global__ void sums_of_floats(float* out, int n) {
  __shared__ float partial[64];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 64) sum += 1.0f / (1 + i + blockIdx.x);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int i = 1; threadIdx.x == 0 && i < 64; ++i) partial[0] += partial[i];
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

CASE(print_results) {
  Device<float> out(300);
  sums_of_floats<<<300, 64>>>(out.data, 1000);
  for (float value : out.get()) std::printf("%a\n", value);
}

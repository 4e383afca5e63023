// Lanes of a warp that name each other, and barriers: a case each, named by the first argument.
#include <cstdio>
#include <cstring>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

const unsigned kAll = 0xffffffff;

// clang-format off
__global__ void takes_after_a_shuffle(int* out) {
  int lane = threadIdx.x, v = lane;
  v = __shfl_down_sync(kAll, v, 1); if (lane < 16) v = __shfl_sync(kAll, v, 20);  // first is fine
  out[lane] = v;
}

__global__ void adds_after_a_shuffle(int* out) {
  int lane = threadIdx.x, v = __shfl_down_sync(kAll, lane, 1); if (lane & 1) v += __shfl_down_sync(kAll, v, 1);  // adds
  out[lane] = v;
}

__global__ void puts_two_aside(int* out) {
  int lane = threadIdx.x, v = lane, a, b;
  if (lane >= 20) return;
  a = __shfl_down_sync(kAll, v, 1); if (lane < 19) v += a; b = __shfl_down_sync(kAll, v, 2); if (lane < 18) v += b;
  out[lane] = v;
}

__global__ void shuffles_in_both_branches(int* out) {
  int lane = threadIdx.x, v = lane;
  if (lane < 16) v = __shfl_xor_sync(kAll, v, 1); else v = __shfl_xor_sync(kAll, v, 2);  // not one
  out[lane] = v;
}

__global__ void waits_in_both_branches(int* out) {
  if (threadIdx.x < 32) __syncthreads(); else __syncthreads();  // two barriers
  out[threadIdx.x] = 1;
}

__global__ void waits_in_both_halves(int* out) {
  if (threadIdx.x < 48) __syncthreads(); else __syncthreads();  // of one warp
  out[threadIdx.x] = 1;
}
// clang-format on

__global__ void takes_from_unnamed(int* out) {
  int lane = threadIdx.x, v = lane;
  if (lane < 16) v = __shfl_sync(0xffff, v, 20);  // not in the mask
  out[lane] = v;
}

__global__ void swaps_with_unnamed(int* out) {
  int lane = threadIdx.x, v = lane;
  if (lane < 16) v += __shfl_xor_sync(0xffff, v, 16);  // the other half
  out[lane] = v;
}

__global__ void does_not_name_itself(int* out) {
  if (threadIdx.x < 16) __syncwarp(0xffff0000);  // of the others
  out[threadIdx.x] = 1;
}

__global__ void votes_without_itself(int* out) {
  unsigned even = __ballot_sync(kAll, threadIdx.x % 2 == 0);
  out[threadIdx.x] = __any_sync(even, threadIdx.x > 20);  // of the even ones
}

// Lanes 8 to 15 get what is not defined, and none of it comes to lane 0.
__global__ void adds_up_half_a_warp(int* out) {
  int lane = threadIdx.x, v = lane;
  if (lane < 16)
    for (int step = 8; step > 0; step /= 2) v += __shfl_down_sync(0xffff, v, step);
  if (lane == 0) out[0] = v;
}

__global__ void asks_each_lane(int* out) {
  int lane = threadIdx.x, sum = 0;
  unsigned odd = __ballot_sync(kAll, lane & 1);
  if (lane & 1) {
    for (int i = 0; i < 32; ++i) {
      int other = __shfl_sync(odd, lane, i);
      if (odd >> i & 1) sum += other;
    }
  }
  out[lane] = sum;
}

__global__ void votes_after_a_return(int* out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = __all_sync(kAll, threadIdx.x < 20);
}

template <int kSteps>
__device__ int unrolled(int v) {
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    if (v & 1) v += i;
    __syncthreads();
    v += __shfl_xor_sync(kAll, v, 1 << i);
  }
  return v;
}

__global__ void meets_at_what_is_unrolled(int* out) {
  int v = threadIdx.x;
  if (v % 32 < 40)
    v = unrolled<5>(v);
  else
    v = 0;
  out[threadIdx.x] = v;
}

// One call in the text, reached in two ways: not inlined, it is one instruction.
__device__ __noinline__ int swapped(int v) { return __shfl_xor_sync(kAll, v, 1); }
__global__ void comes_there_in_two_ways(int* out) {
  int v = threadIdx.x;
  if (v < 16)
    v = swapped(v) + 1;
  else
    v = swapped(v) - 1;
  out[threadIdx.x] = v;
}

int main(int, char** names) {
  int* out;
  check(cudaMalloc(&out, 64 * sizeof(int)));
  check(cudaMemset(out, 0, 64 * sizeof(int)));
#define CASE(kernel, threads) \
  if (std::strcmp(names[1], #kernel) == 0) kernel<<<1, threads>>>(out)
  CASE(takes_after_a_shuffle, 32);
  CASE(adds_after_a_shuffle, 32);
  CASE(puts_two_aside, 32);
  CASE(shuffles_in_both_branches, 32);
  CASE(waits_in_both_branches, 64);
  CASE(waits_in_both_halves, 64);
  CASE(takes_from_unnamed, 32);
  CASE(swaps_with_unnamed, 32);
  CASE(does_not_name_itself, 32);
  CASE(votes_without_itself, 32);
  CASE(adds_up_half_a_warp, 32);
  CASE(asks_each_lane, 32);
  CASE(votes_after_a_return, 32);
  CASE(comes_there_in_two_ways, 32);
  CASE(meets_at_what_is_unrolled, 64);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  check(cudaFree(out));
  return 0;
}

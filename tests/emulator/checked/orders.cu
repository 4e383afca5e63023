// What orders the accesses of a launch, and what does not: a case each, named by the first
// argument.
#include <cstdio>
#include <cstring>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void tries_a_lock(int* words, int n) {
  const int account = threadIdx.x % n;
  bool done = false;
  while (!done) {
    if (atomicCAS(&words[account], 0, 1) == 0) {
      __threadfence();
      words[n + account] += 1;
      __threadfence();
      atomicExch(&words[account], 0);
      done = true;
    }
  }
}

__global__ void unlocks_without_a_fence(int* words, int n) {
  const int account = threadIdx.x % n;
  bool done = false;
  while (!done) {
    if (atomicCAS(&words[account], 0, 1) == 0) {
      __threadfence();
      words[n + account] += 1;  // no fence before the lock is free
      atomicExch(&words[account], 0);
      done = true;
    }
  }
}

__global__ void waits_for_a_flag(int* values, int n) {
  volatile int* flags = values + n;
  const int b = blockIdx.x;
  int before = 0;
  if (threadIdx.x != blockDim.x - 1) return;
  if (b > 0) {
    while (flags[b - 1] == 0) continue;
    __threadfence();
    before = values[b - 1];
  }
  values[b] = before + b;
  __threadfence();
  flags[b] = 1;
}

__global__ void sets_a_flag_without_a_fence(int* words, int n) {
  volatile int *values = words, *flags = words + n;
  const int b = blockIdx.x;
  int before = 0;
  if (threadIdx.x != blockDim.x - 1) return;
  if (b > 0) {
    while (flags[b - 1] == 0) continue;
    before = values[b - 1];  // perhaps not written yet
  }
  values[b] = before + b;
  flags[b] = 1;
}

__global__ void counts_in_volatile(int* words, int) {
  volatile int* count = words;
  *count = *count + 1;  // not atomic
}

// No loop waits for a value, so two blocks may read the same.
__global__ void counts_behind_a_fence(int* words, int) {
  if (threadIdx.x != 0) return;
  volatile int* count = words;
  const int before = *count;
  __threadfence();
  *count = before + 1;  // not atomic behind a fence
}

// The order of blocks is that of their tickets.
__device__ unsigned line;
__device__ int ticket_of_block() {
  __shared__ int mine;
  if (threadIdx.x == 0) mine = atomicInc(&line, gridDim.x - 1);
  __syncthreads();
  return mine;
}

__global__ void takes_turns(int* words, int) {
  const int b = ticket_of_block();
  if (threadIdx.x != 0) return;
  while (*(volatile int*)&words[0] != b);
  __threadfence();
  words[1] += b;
  __threadfence();
  *(volatile int*)&words[0] = b + 1;
}

__device__ int value_of(int* word) { return *(volatile int*)word; }
__global__ void blocks_take_turns(int* words, int n) {
  const int b = ticket_of_block(), i = threadIdx.x;
  if (i == 0) {
    for (;;) {
      int now = value_of(words);
      if (now == b) break;
      __nanosleep(20);
    }
    __threadfence();
  }
  __syncthreads();
  words[n + i] += b;
  __threadfence();
  __syncthreads();
  if (i == 0) *(volatile int*)words = b + 1;
}

__global__ void looks_back(int* words, int n) {
  int *flags = words, *values = words + n;
  const int b = ticket_of_block();
  if (threadIdx.x != 0) return;
  values[b] = b;
  __threadfence();
  ((volatile int*)flags)[b] = 1;
  int sum = b, at = b - 1;
  while (at >= 0) {
    int flag;
    do {
      flag = ((volatile int*)flags)[at];
    } while (flag == 0);
    __threadfence();
    sum += values[at];
    at = flag == 2 ? -1 : at - 1;
  }
  words[n + gridDim.x + b] = sum;
  __threadfence();
}

__global__ void takes_a_turn_without_a_fence(int* words, int) {
  const int b = ticket_of_block();
  if (threadIdx.x != 0) return;
  while (*(volatile int*)&words[0] != b);
  __threadfence();
  words[1] += b;  // perhaps not seen
  *(volatile int*)&words[0] = b + 1;
}

__global__ void looks_whose_turn_it_is(int* words, int) {
  if (threadIdx.x != 0) return;
  int b = -1;
  for (int turn = 0; turn < 3; ++turn) b = *(volatile int*)&words[0];
  __threadfence();
  *(volatile int*)&words[0] = b + 1;  // nobody waited
}

__global__ void waits_for_a_warp(int* words, int n) {
  __shared__ volatile int ready;
  __shared__ int value;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (ready == 0) continue;
    __threadfence_block();
    words[n * blockIdx.x + threadIdx.x] = value;
  } else if (threadIdx.x == 40) {
    value = 7;
    __threadfence_block();
    ready = 1;
  }
}

__global__ void warps_take_turns(int* words, int n) {
  __shared__ volatile int turn;
  if (threadIdx.x == 0) turn = 0;
  __syncthreads();
  const int mine = 1 - threadIdx.x / 32;
  if (threadIdx.x % 32 != 0) return;
  while (turn != mine) continue;
  __threadfence_block();
  words[n * blockIdx.x] += mine;
  __threadfence_block();
  turn = mine + 1;
}

__global__ void waits_for_a_warp_without_a_fence(int* words, int n) {
  __shared__ volatile int ready;
  __shared__ int value;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    while (ready == 0) continue;
    words[n * blockIdx.x] = value;  // perhaps not there
  } else if (threadIdx.x == 40) {
    value = 7;
    ready = 1;
  }
}

__global__ void adds_in_step(int* words, int n) {
  __shared__ volatile int sums[32];
  const int i = threadIdx.x;
  if (i >= 32) return;
  sums[i] = i;
  __syncwarp();
  for (int half = 16; half > 0; half /= 2)
    if (i < half) sums[i] += sums[i + half];  // by lanes in step
  if (i == 0) words[n * blockIdx.x] = sums[0];
}

__global__ void fences_but_asks_nobody(int* words, int n) {
  words[blockIdx.x % n] = blockIdx.x;  // perhaps read before
  __threadfence();
  words[n + blockIdx.x % n] = words[(blockIdx.x + 1) % n];
}

__device__ unsigned ticket;
__global__ void last_block_adds_up(int* words, int n) {
  __shared__ bool last;
  if (static_cast<int>(threadIdx.x) < n) atomicAdd(&words[threadIdx.x], 1);
  words[n + blockIdx.x % n] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 1)
    for (int i = 1; i < n; ++i) words[n] += words[n + i];
}

__device__ void smallest(int* at, int value) {
  int old = *at;
  while (value < old) {
    const int assumed = old;
    old = atomicCAS(at, assumed, value);
    if (old == assumed) break;
  }
}
__global__ void swaps_the_smallest(int* words, int) { smallest(words, threadIdx.x - 100); }

__global__ void shifts(int* words, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) words[i] = words[(i + 32) % n] + 1;  // of another block
}

__global__ void leaves_the_loop(int* words, int n) {
  __shared__ int sums[64];
  sums[threadIdx.x] = threadIdx.x;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) >= half) break;
    sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();  // of those that are left
  }
  if (threadIdx.x == 0) words[blockIdx.x % n] = sums[0];
}

__global__ void returns_before_and_in_the_loop(int* words, int n) {
  __shared__ int sums[64];
  sums[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (static_cast<int>(threadIdx.x) >= n) return;
  for (int turn = 0; turn < n / 10; ++turn) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) >= n - turn) return;
  }
  if (threadIdx.x == 0) words[blockIdx.x % n] = sums[0];
}

int main(int, char** names) {
  const int n = 64;
  int* words;
  const bool managed = std::strcmp(names[2], "managed") == 0;
  check(managed ? cudaMallocManaged(&words, 2 * n * sizeof(int))
                : cudaMalloc(&words, 2 * n * sizeof(int)));
  check(cudaMemset(words, 0, 2 * n * sizeof(int)));
#define CASE(kernel, blocks, count) \
  if (std::strcmp(names[1], #kernel) == 0) kernel<<<blocks, 64>>>(words, count)
  CASE(tries_a_lock, 4, 3);
  CASE(unlocks_without_a_fence, 4, 3);
  CASE(waits_for_a_flag, 10, n);
  CASE(sets_a_flag_without_a_fence, 10, n);
  CASE(counts_in_volatile, 4, n);
  CASE(counts_behind_a_fence, 4, n);
  CASE(takes_turns, 10, n);
  CASE(blocks_take_turns, 10, n);
  CASE(looks_back, 10, n);
  CASE(takes_a_turn_without_a_fence, 10, n);
  CASE(looks_whose_turn_it_is, 4, n);
  CASE(waits_for_a_warp, 2, n);
  CASE(warps_take_turns, 2, n);
  CASE(waits_for_a_warp_without_a_fence, 2, n);
  CASE(adds_in_step, 2, n);
  CASE(fences_but_asks_nobody, 10, n);
  CASE(last_block_adds_up, 10, 20);
  CASE(swaps_the_smallest, 3, n);
  CASE(shifts, 2, n);
  CASE(leaves_the_loop, 1, n);
  CASE(returns_before_and_in_the_loop, 1, 40);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());
  check(cudaFree(words));
  return 0;
}

// Threads that wait in a loop for others of their block.
#include "check.h"

const int kThreads = 128;

// Lanes 0 to 31 wait for a thread behind them, which has not begun.
__global__ void by_volatile_shared(int* out, int) {
  __shared__ volatile int ready;
  __shared__ int value;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (ready == 0);
    out[threadIdx.x] = value;
  } else if (threadIdx.x == 100) {
    value = 7;
    __threadfence_block();
    ready = 1;
  }
}

__global__ void by_volatile_global(int* out, int turn) {
  volatile int* flag = out + kThreads;
  if (threadIdx.x < 32) {
    while (*flag != turn) continue;
    __threadfence();
    out[threadIdx.x] = out[kThreads + 1];
  } else if (threadIdx.x == 100) {
    out[kThreads + 1] = 7;
    __threadfence();
    *flag = turn;
  }
}

__global__ void by_atomic(int* out, int turn) {
  int* flag = out + kThreads;
  if (threadIdx.x < 32) {
    while (true) {
      if (atomicAdd(flag, 0) == turn) break;
      __nanosleep(100);
    }
    out[threadIdx.x] = atomicAdd(flag + 1, 0);
  } else if (threadIdx.x == 100) {
    atomicExch(flag + 1, 7);
    atomicExch(flag, turn);
  }
}

struct Flag {
  int* word;
  __device__ int load() const { return *(volatile int*)word; }
  __device__ void wait_for(int turn) const {
    int now;
    do now = load();
    while (now != turn);
    __threadfence();
  }
  __device__ void set(int turn) const {
    __threadfence();
    *(volatile int*)word = turn;
  }
};

// One thread fills, 32 others use, a hundred times over; the other warps wait at the barrier.
__global__ void in_turns(int* out, int turn) {
  const Flag full = {out + kThreads}, empty = {out + kThreads + 1};
  volatile int* value = out + kThreads + 2;
  const int i = threadIdx.x;
  for (int k = 0; k < 100; ++k) {
    if (i == 0) full.wait_for(turn + k);
    if (i < 32) {
      __syncwarp();
      out[i] = *value;
      __syncwarp();
    }
    if (i == 0) empty.set(turn + k);
    if (i == 100) {
      *value = k - 92;
      full.set(turn + k);
      empty.wait_for(turn + k);
    }
  }
  __syncthreads();
}

// The lock's holder waits for its warp, while another warp wants the lock.
__global__ void holds_a_lock(int* out, int) {
  int* lock = out + kThreads;
  if (threadIdx.x < 64) {
    if (threadIdx.x % 32 == 0) {
      while (atomicCAS(lock, 0, 1) != 0);
    }
    __syncwarp();
    atomicAdd(&out[threadIdx.x % 32], threadIdx.x < 32 ? 3 : 4);
    __syncwarp();
    if (threadIdx.x % 32 == 0) atomicExch(lock, 0);
  }
}

__global__ void all_but_one(int* out, int turn) {
  volatile int* flag = out + kThreads;
  if (threadIdx.x == kThreads - 1) *flag = turn;
  while (*flag != turn) {
  }
  if (threadIdx.x < 32) out[threadIdx.x] = 7;
}

template <typename Kernel>
void gives_sevens(Kernel kernel) {
  Device<int> out(std::vector<int>(kThreads + 8, 0));
  kernel<<<1, kThreads>>>(out.data, 1000);
  CHECK(cudaGetLastError() == cudaSuccess);
  for (int i = 0; i < 32; ++i) CHECK(out.get()[i] == 7);
}

CASE(a_volatile_flag_in_shared_memory_is_waited_for) { gives_sevens(by_volatile_shared); }
CASE(a_volatile_flag_in_global_memory_is_waited_for) { gives_sevens(by_volatile_global); }
CASE(an_atomic_flag_is_waited_for) { gives_sevens(by_atomic); }
CASE(two_threads_take_turns) { gives_sevens(in_turns); }
CASE(a_lock_is_held_while_its_warp_waits) { gives_sevens(holds_a_lock); }
CASE(all_threads_but_one_wait) { gives_sevens(all_but_one); }

__global__ void forgets_to_set(volatile int* flag) {
  if (threadIdx.x < 32) {
    while (*flag == 0);
  }
  __syncthreads();
  if (threadIdx.x == 40) *flag = 1;
}

CASE(who_waits_for_ever_is_stopped) {
  setenv("EMULATOR_LAUNCH_SECONDS", "0.5", 1);
  Device<int> flag(std::vector<int>(1, 0));
  forgets_to_set<<<1, 64>>>(flag.data);
  CHECK(cudaGetLastError() == cudaErrorLaunchTimeout);
}

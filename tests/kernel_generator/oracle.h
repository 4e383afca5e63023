/*!
 * \file oracle.h
 * \brief CUDA for plain C++, as simple as it can be: threads run one after the other.
 *
 * It shares no line with the emulated GPU. Where threads wait for each other, each has a stack of
 * its own (ucontext) and runs until it waits.
 */
#ifndef TESTS_KERNEL_GENERATOR_ORACLE_H_
#define TESTS_KERNEL_GENERATOR_ORACLE_H_

#include <ucontext.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;

// The host's calls: memory is memory.
enum cudaError_t { cudaSuccess };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
inline cudaError_t cudaMalloc(void** data, size_t size) {
  *data = std::malloc(size);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* data) {
  std::free(data);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  std::memcpy(to, from, size);
  return cudaSuccess;
}
template <typename T>
void cudaMemcpyFromSymbol(void* to, const T& from, size_t size) {
  std::memcpy(to, &from, size);
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorName(cudaError_t) { return "none"; }

// Threads that wait.
enum Waiting { kRuns, kBlock, kWarp, kEnded };
struct Thread {
  ucontext_t context;
  uint3 index;
  Waiting waiting;
  char* stack;
};
static Thread threads[1024];
static Thread* running;
static ucontext_t scheduler;
static int thread_count;
static void (*kernel_call)(const void*);
static const void* kernel_data;
static int counted[3];  // what __syncthreads_count saw, for the barrier that is open and the last

inline int position() { return static_cast<int>(running - threads); }

inline void wait(Waiting what) {
  running->waiting = what;
  Thread* me = running;
  swapcontext(&me->context, &scheduler);
  running = me;
  threadIdx = me->index;
}

inline void start() {
  kernel_call(kernel_data);
  running->waiting = kEnded;
}

inline bool release(int first, int last, Waiting what) {
  int there = 0;
  for (int t = first; t < last; ++t) {
    if (threads[t].waiting == kEnded) continue;
    if (threads[t].waiting != what) return false;
    ++there;
  }
  for (int t = first; t < last; ++t) {
    if (threads[t].waiting == what) threads[t].waiting = kRuns;
  }
  return there > 0;
}

inline void run_block() {
  for (int t = 0; t < thread_count; ++t) {
    Thread& thread = threads[t];
    if (!thread.stack) thread.stack = static_cast<char*>(std::malloc(65536));
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack;
    thread.context.uc_stack.ss_size = 65536;
    thread.context.uc_link = &scheduler;
    makecontext(&thread.context, start, 0);
    thread.waiting = kRuns;
    thread.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
  }
  for (bool left = true; left;) {
    left = false;
    bool moved = false;
    for (int t = 0; t < thread_count; ++t) {
      if (threads[t].waiting != kRuns) continue;
      moved = true;
      running = &threads[t];
      threadIdx = running->index;
      swapcontext(&scheduler, &running->context);
    }
    for (int w = 0; w < thread_count; w += 32) {
      moved |= release(w, w + 32 < thread_count ? w + 32 : thread_count, kWarp);
    }
    moved |= release(0, thread_count, kBlock);
    for (int t = 0; t < thread_count; ++t) left |= threads[t].waiting != kEnded;
    if (left && !moved) {
      std::printf("# the threads wait for ever\n");
      std::exit(1);
    }
  }
}

template <typename Call>
void call_once(const void* call) {
  (*static_cast<const Call*>(call))();
}

template <typename Call>
void oracle_run(dim3 grid, dim3 block, bool waits, const Call& call) {
  blockDim = block;
  gridDim = grid;
  kernel_call = call_once<Call>;
  kernel_data = &call;
  thread_count = static_cast<int>(block.x * block.y * block.z);
  for (unsigned b = 0; b < grid.x * grid.y * grid.z; ++b) {
    blockIdx = {b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y)};
    if (waits) {
      run_block();
      continue;
    }
    for (unsigned t = 0; t < block.x * block.y * block.z; ++t) {
      threadIdx = {t % block.x, t / block.x % block.y, t / (block.x * block.y)};
      call();
    }
  }
}

inline void __syncthreads() { wait(kBlock); }
inline int __syncthreads_count(int predicate) {
  counted[0] += predicate != 0;
  wait(kBlock);
  const int sum = counted[0];
  wait(kBlock);
  counted[0] = 0;
  wait(kBlock);
  return sum;
}
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return __syncthreads_count(!predicate) == 0; }
inline void __syncwarp(unsigned = ~0u) { wait(kWarp); }

// Warps: all 32 lanes are there.
static unsigned char slots[1024][8];

template <typename T>
T from_lane(T value, int lane) {
  std::memcpy(slots[position()], &value, sizeof value);
  wait(kWarp);
  T other;
  std::memcpy(&other, slots[(position() & ~31) + lane], sizeof other);
  wait(kWarp);
  return other;
}
template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  return from_lane(value, lane & 31);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask, int width = 32) {
  const int me = position() & 31, other = me ^ mask;
  return from_lane(value, other < (me & ~(width - 1)) + width ? other : me);
}
template <typename T>
T __shfl_down_sync(unsigned, T value, int delta, int width = 32) {
  const int me = position() & 31;
  return from_lane(value, (me & (width - 1)) + delta < width ? me + delta : me);
}
template <typename T>
T __shfl_up_sync(unsigned, T value, int delta, int width = 32) {
  const int me = position() & 31;
  return from_lane(value, (me & (width - 1)) - delta >= 0 ? me - delta : me);
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  unsigned all = 0;
  for (int lane = 0; lane < 32; ++lane) all |= (from_lane(predicate, lane) != 0 ? 1u : 0u) << lane;
  return all;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == ~0u;
}

// No thread is stopped in the middle, so nothing here has to be atomic.
#define ORACLE_ATOMIC(name, result) \
  template <typename T>             \
  T name(T* p, T v) {               \
    const T old = *p;               \
    *p = result;                    \
    return old;                     \
  }
ORACLE_ATOMIC(atomicAdd, old + v)
ORACLE_ATOMIC(atomicMin, v < old ? v : old)
ORACLE_ATOMIC(atomicMax, v > old ? v : old)
ORACLE_ATOMIC(atomicAnd, old& v)
ORACLE_ATOMIC(atomicOr, old | v)
ORACLE_ATOMIC(atomicXor, old ^ v)
#undef ORACLE_ATOMIC

#define ORACLE_SMALLER(T)                          \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
ORACLE_SMALLER(int)
ORACLE_SMALLER(unsigned)
ORACLE_SMALLER(unsigned long)
ORACLE_SMALLER(long long)
ORACLE_SMALLER(unsigned long long)
#undef ORACLE_SMALLER
// Of 0 and -0, a GPU takes 0 for more.
#define ORACLE_SMALLER(T)                                                               \
  inline T min(T a, T b) { return a == b ? (std::signbit(a) ? a : b) : b < a ? b : a; } \
  inline T max(T a, T b) { return a == b ? (std::signbit(a) ? b : a) : a < b ? b : a; }
ORACLE_SMALLER(float)
ORACLE_SMALLER(double)
#undef ORACLE_SMALLER
template <typename T>
T __ldg(const T* p) {
  return *p;
}

#endif  // TESTS_KERNEL_GENERATOR_ORACLE_H_

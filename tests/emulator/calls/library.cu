// Calls between the host and the device; in each title what nvcc 13 says of it (cases.py).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

// ---- functions of mathematics: nvcc accepts
__global__ void math_k(float* p) {
  p[0] = sqrtf(p[0]) + std::sqrt(p[1]) + exp(p[2]) + std::pow(p[0], 2.0f) + std::abs(p[1]);
  p[1] = fmaxf(p[0], p[1]) + std::fabs(p[0]) + std::floor(p[1]) + abs(-3) + std::isnan(p[0]);
  p[2] = max(p[0], p[1]) + min(3, 4) + std::fmin(p[0], p[1]) + std::tanh(p[2]) + std::exp(p[0]);
}

// ---- functions of memory, and printf: nvcc accepts
__global__ void memory_k(char* p) {
  memcpy(p, p + 8, 4);
  memset(p, 0, 4);
  printf("%d", p[0]);
  char* q = static_cast<char*>(malloc(3));
  free(q);
  delete new int;
}

// ---- std::memcpy: nvcc accepts
__global__ void std_memory_k(char* p) { std::memcpy(p, p + 8, 4); }

// ---- std::printf: nvcc accepts
__global__ void std_printf_k(char* p) { std::printf("%d", p[0]); }

// ---- std::move and std::forward: nvcc accepts
__global__ void std_move_k(int* p) { p[0] = std::move(p[1]) + std::forward<int>(p[2]); }

// ---- std::numeric_limits: nvcc refuses without --expt-relaxed-constexpr, the emulated GPU accepts
__global__ void limits_k(float* p) { p[0] = std::numeric_limits<float>::max(); }

// ---- std::numeric_limits as a constant: nvcc refuses without --expt-relaxed-constexpr, the emulated GPU accepts
__global__ void limits_constant_k(float* p) {
  constexpr float most = std::numeric_limits<float>::infinity();
  p[0] = most;
}

// ---- __syncthreads from the host: nvcc refuses, the emulated GPU accepts
void sync_host() { __syncthreads(); }

// ---- atomicAdd from the host: nvcc refuses, the emulated GPU accepts
void atomic_host(int* p) { atomicAdd(p, 1); }

// ---- __expf from the host: nvcc refuses, the emulated GPU accepts
float fast_host(float x) { return __expf(x); }

// ---- rsqrtf from the host: nvcc accepts
float rsqrt_host(float x) { return rsqrtf(x); }

// ---- threadIdx from the host: nvcc accepts
int thread_host() { return threadIdx.x; }

// ---- __shfl_sync from the host: nvcc refuses, the emulated GPU accepts
int shuffle_host(int x) { return __shfl_sync(0xffffffff, x, 0); }

// ---- max and min from the host: nvcc accepts
int max_host(int x) { return max(x, 3) + min(x, 4); }

// ---- atomicAdd from main's helper of both: nvcc refuses, the emulated GPU accepts
__host__ __device__ void atomic_both(int* p) { atomicAdd(p, 1); }

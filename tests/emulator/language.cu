// The language: indices, shared memory, vector types, atomics, mathematics. The includes and the
// `using` are those of a careless student.
#include <assert.h>
#include <cublas_v2.h>
#include <device_launch_parameters.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <iostream>

#include "check.h"
using namespace std;

__global__ void write_indices(int* out) {
  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

CASE(every_thread_of_a_3d_grid_has_its_own_index) {
  const int blocks = 5 * 3 * 2, threads = 4 * 3 * 2;
  Device<int> out(blocks * threads);
  write_indices<<<dim3(5, 3, 2), dim3(4, 3, 2)>>>(out.data);
  vector<int> got = out.get();
  for (int i = 0; i < blocks * threads; ++i) CHECK(got[i] == i / threads * 1000 + i % threads);
}

__global__ void turn_around(const float* in, float* out) {
  __shared__ float tile[4][8 + 1], sum;
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 8 + threadIdx.x];
  if (threadIdx.x == 0 && threadIdx.y == 0) sum = 100;
  __syncthreads();
  out[threadIdx.y * 8 + threadIdx.x] = tile[3 - threadIdx.y][7 - threadIdx.x] + sum;
}

CASE(static_shared_memory_is_common_to_a_block) {
  vector<float> in(32);
  for (int i = 0; i < 32; ++i) in[i] = i;
  Device<float> from(in), to(32);
  dim3 blockDim(8, 4), gridDim(1);  // names that a host program may well use
  turn_around<<<gridDim, blockDim>>>(from.data, to.data);
  for (int i = 0; i < 32; ++i) CHECK(to.get()[i] == 131 - i);
}

extern __shared__ float of_the_file[];

__global__ void dynamic_of_file(float* out) {
  of_the_file[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = of_the_file[blockDim.x - 1 - threadIdx.x];
}

template <typename T>
__global__ void dynamic_of_kernel(T* out) {
  extern __shared__ __align__(16) unsigned char bytes[];
  T* values = reinterpret_cast<T*>(bytes);
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

CASE(dynamic_shared_memory_is_common_to_a_block) {
  Device<float> a(64);
  Device<double> b(64);
  dynamic_of_file<<<1, 64, 64 * sizeof(float)>>>(a.data);
  dynamic_of_kernel<<<1, 64, 64 * sizeof(double)>>>(b.data);
  for (int i = 0; i < 64; ++i) CHECK(a.get()[i] == 63 - i && b.get()[i] == 63 - i);
}

__global__ void read_shared(float* out) {
  __shared__ float value;
  extern __shared__ float values[];
  out[blockIdx.x * 2] = value;
  out[blockIdx.x * 2 + 1] = values[3];
  value = values[3] = 1;
}

CASE(shared_memory_that_was_never_written_is_nan) {
  Device<float> out(100);
  read_shared<<<50, 1, 16>>>(out.data);
  for (float value : out.get()) CHECK(isnan(value));
}

__constant__ float factors[4];
__device__ int calls;

__global__ void scale(float4* values, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = values[i];
  values[i] = make_float4(v.x * factors[0], v.y * factors[1], v.z * factors[2], v.w * factors[3]);
  atomicAdd(&calls, 1);
}

CASE(constants_and_device_variables_are_copied_by_symbol) {
  float wanted[4] = {1, 10, 100, 1000};
  CHECK(cudaMemcpyToSymbol(factors, wanted, sizeof wanted) == cudaSuccess);
  Device<float4> values(vector<float4>(5, make_float4(1, 2, 3, 4)));
  scale<<<1, 32>>>(values.data, 5);
  float4 last = values.get()[4];
  CHECK(last.x == 1 && last.y == 20 && last.z == 300 && last.w == 4000);
  int count = 0;
  CHECK(cudaMemcpyFromSymbol(&count, calls, sizeof count) == cudaSuccess && count == 5);
}

__global__ void count_all(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  atomicAdd(i, 1);
  atomicMax(u, blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(l, 1ull);
  atomicAdd(f, 1.0f);
  atomicAdd(d, 0.5);
  atomicSub(i + 1, 1);
  atomicMin(i + 2, -static_cast<int>(threadIdx.x));
  atomicOr(u + 1, 1u << (threadIdx.x % 32));
  atomicInc(u + 2, 6);
  int seen = i[3];  // add by compare and swap
  for (int expected;
       (expected = seen), (seen = atomicCAS(i + 3, expected, expected + 2)) != expected;) {
  }
}

CASE(atomics_lose_nothing_across_blocks) {
  Device<int> i(vector<int>(4, 0));
  Device<unsigned> u(vector<unsigned>(3, 0));
  Device<unsigned long long> l(vector<unsigned long long>(1, 0));
  Device<float> f(vector<float>(1, 0));
  Device<double> d(vector<double>(1, 0));
  count_all<<<500, 64>>>(i.data, u.data, l.data, f.data, d.data);
  CHECK(i.get() == (vector<int>{32000, -32000, -63, 64000}));
  CHECK(u.get()[0] == 31999 && u.get()[1] == 0xffffffff && u.get()[2] == 32000 % 7);
  CHECK(l.get()[0] == 32000 && f.get()[0] == 32000 && d.get()[0] == 16000);
}

__global__ void mathematics(float* out, float x, int n) {
  int i = 0;
  out[i++] = max(x, 1.0) + max(n, 3u) + min(2, 1) + max(x, x);             // 2 + 4 + 1 + 2
  out[i++] = exp(x) - expf(x) + __expf(x) - exp(2.0);                      // 0
  out[i++] = log(x) - __logf(x) + sqrt(x) - sqrtf(x);                      // 0
  out[i++] = rsqrtf(4.0f) + fmaxf(x, 1) + fabsf(-x) + fabs(-x) + abs(-n);  // 0.5 + 2 + 2 + 2 + 4
  out[i++] = pow(x, 2.0f) + powf(x, 2) + floor(x) + ceil(1.5f);            // 4 + 4 + 2 + 2
  out[i++] = tanh(0.0f) + erf(0.0f) + tanhf(0) + fmaf(x, x, 1);            // 5
  out[i++] = isnan(x) || isinf(x) || !isinf(INFINITY) || FLT_MAX < 1e38f;  // 0
  out[i++] = __fdividef(x, 4) + x + __fmul_rn(x, x) + __fadd_rn(x, x);     // 0.5 + 2 + 4 + 4
  out[i++] = max(x, NAN);                                                  // 2
  out[i++] = __popc(255) + __clz(1) + __ffs(8) + warpSize;                 // 8 + 31 + 4 + 32
  out[i++] = __int_as_float(__float_as_int(x));                            // 2
}

CASE(mathematics_is_in_the_global_namespace) {
  Device<float> out(11);
  mathematics<<<1, 1>>>(out.data, 2, 4);
  const float wanted[] = {9, 0, 0, 10.5, 12, 5, 0, 10.5, 2, 75, 2};
  for (int i = 0; i < 11; ++i) CHECK(std::fabs(out.get()[i] - wanted[i]) < 1e-5);
}

__global__ void greet() {
  if (threadIdx.x < 2) printf("thread %d of block %d\n", threadIdx.x, blockIdx.x);
}

CASE(kernels_print) {
  greet<<<2, 32>>>();
  cudaDeviceSynchronize();
  _exit(0);  // what was printed is out by now
}

__global__ void arguments(const float* null, int narrow, bool flag, double wide, float* out) {
  out[0] = (null == NULL) + narrow + flag + wide;
}
template <typename T, int n>
__global__ void both(T* out, T value) {
  out[0] = value * n;
}
template <typename T>
__global__ void deduced(T* out, T value) {
  out[0] = value;
}
namespace inner {
__global__ void four(float* out) { out[0] = 4; }
}  // namespace inner

CASE(arguments_are_converted_as_in_any_call) {
  Device<float> out(1);
  int64_t narrow = 2;
  arguments<<<1, 1>>>(NULL, narrow, true, 1, out.data);
  CHECK(out.get()[0] == 5);
  both<float, 16><<<1, 1>>>(out.data, 2);
  CHECK(out.get()[0] == 32);
  deduced<<<1, 1>>>(out.data, 3.0f);
  CHECK(out.get()[0] == 3);
  ::inner::four<<<1, 1>>>(out.data);
  CHECK(out.get()[0] == 4);
  void (*pointer)(float*, float) = deduced<float>;
  (*pointer)<<<1, 1>>>(out.data, 5);
  CHECK(out.get()[0] == 5);
  auto kernel = both<float, 2>;
  kernel<<<1, 1>>>(out.data, 3);
  CHECK(out.get()[0] == 6);
}

__global__ void increment(int* value) { atomicAdd(value, 1); }

CASE(configuration_and_arguments_are_evaluated_once) {
  Device<int> value(vector<int>(1, 0));
  int grids = 0, blocks = 0, pointers = 0;
  increment<<<(++grids, 2), (++blocks, 3)>>>((++pointers, value.data));
  CHECK(grids == 1 && blocks == 1 && pointers == 1 && value.get()[0] == 6);
}

// Kernels of which everybody can say what they move.
#include "check.h"

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <algorithm>
#include <cstring>

__global__ void copies(int n, const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

CASE(copies_neighbours) {
  Device<float> in(4096), out(4096);
  copies<<<16, 256>>>(4096, in.data, out.data);
}

CASE(copies_all_but_some_lanes) {
  Device<float> in(100), out(100);
  copies<<<1, 128>>>(100, in.data, out.data);
}

CASE(copies_twice) {
  Device<float> in(4096), out(4096);
  for (int i = 0; i < 2; ++i) copies<<<16, 256>>>(4096, in.data, out.data);
}

__global__ void copies_fours(int n, const float4* in, float4* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 four = in[i];
  four.y += four.x;
  out[i] = four;
}

CASE(copies_vectors) {
  Device<float> in(4096), out(4096);
  copies_fours<<<4, 256>>>(1024, reinterpret_cast<float4*>(in.data),
                           reinterpret_cast<float4*>(out.data));
}

__global__ void strides(int step, const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x * step];
}

CASE(reads_each_32nd) {
  Device<float> in(4096), out(128);
  strides<<<1, 128>>>(32, in.data, out.data);
}

CASE(reads_one_for_all) {
  Device<float> in(1), out(128);
  strides<<<1, 128>>>(0, in.data, out.data);
}

// A lane takes as many turns as its number says.
__global__ void turns(const float* in, float* out) {
  float sum = 0;
  for (unsigned i = 0; i < threadIdx.x; ++i) sum += in[i * 32 + threadIdx.x];
  out[threadIdx.x] = sum;
}

CASE(lanes_that_end_early) {
  Device<float> in(32 * 32), out(32);
  turns<<<1, 32>>>(in.data, out.data);
}

template <int padding>
__global__ void transposes(const float* in, float* out, int n) {
  __shared__ float tile[32][32 + padding];
  const int row = blockIdx.y * 32, column = blockIdx.x * 32;
  tile[threadIdx.y][threadIdx.x] = in[(row + threadIdx.y) * n + column + threadIdx.x];
  __syncthreads();
  out[(column + threadIdx.y) * n + row + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

template <int padding>
static void transpose() {
  Device<float> in(64 * 64), out(64 * 64);
  transposes<padding><<<dim3(2, 2), dim3(32, 32)>>>(in.data, out.data, 64);
}

CASE(transposes_by_a_tile) { transpose<0>(); }
CASE(transposes_by_a_padded_tile) { transpose<1>(); }

__global__ void sums(const float* in, float* out) {
  float value = in[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = value;
}

CASE(sums_by_shuffles) {
  Device<float> in(64), out(2);
  sums<<<1, 64>>>(in.data, out.data);
}

__global__ void adds(int* one, int* each, int* far) {
  __shared__ int here;
  if (threadIdx.x == 0) here = 0;
  __syncthreads();
  atomicAdd(one, 1);
  atomicAdd(each + threadIdx.x, 1);
  atomicAdd(&here, 1);
  __syncthreads();
  if (threadIdx.x == 0) *far = here;
}

CASE(adds_atomically) {
  Device<int> one(1), each(32), far(1);
  adds<<<1, 32>>>(one.data, each.data, far.data);
}

__global__ void copies_on_the_side(const float* in, float* out) {
  __shared__ __align__(16) float kept[128];
  __pipeline_memcpy_async(kept + threadIdx.x * 4, in + threadIdx.x * 4, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int i = 0; i < 4; ++i) out[i * 32 + threadIdx.x] = kept[i * 32 + threadIdx.x];
}

CASE(copies_asynchronously) {
  Device<float> in(128), out(128);
  copies_on_the_side<<<1, 32>>>(in.data, out.data);
}

// What a thread has of its own is in registers.
__global__ void keeps(const float* in, float* out) {
  float mine[8];
  for (int i = 0; i < 8; ++i) mine[i] = in[i * 32 + threadIdx.x];
  for (int i = 0; i < 8; ++i) out[i * 32 + threadIdx.x] = mine[7 - i];
}

CASE(keeps_its_own_array) {
  Device<float> in(256), out(256);
  keeps<<<1, 32>>>(in.data, out.data);
}

// Each lane has so much that registers do not hold it.
template <int count>
__global__ void remembers(const float* in, float* out) {
  float mine[count];
  for (int i = 0; i < count; ++i) mine[i] = in[i % 32];
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += mine[(i * 7 + threadIdx.x) % count];
  out[threadIdx.x] = sum;
}

struct Four {
  float4 part[4];
};

// A lane reads 64 bytes at once, which takes a GPU four turns.
__global__ void takes_structs(const Four* in, float* out) {
  const Four mine = in[threadIdx.x];
  float sum = 0;
  for (const float4& four : mine.part) sum += four.x * four.y + four.z * four.w;
  out[threadIdx.x] = sum;
}

CASE(copies_structs) {
  Device<Four> in(32);
  Device<float> out(32);
  takes_structs<<<1, 32>>>(in.data, out.data);
}

template <typename Copy>
__device__ void copy_few(const float* in, float* out, Copy copy) {
  float mine[64];
  copy(in, mine);
  float sum = 0;
  for (int i = 0; i < 64; ++i) sum += mine[i] * i;
  out[threadIdx.x] = sum;
}
__global__ void moves(const float* in, float* out, size_t size) {
  copy_few(in, out, [&](const float* from, float* to) { memmove(to, from, size); });
}
__global__ void copies_builtin(const float* in, float* out, size_t size) {
  copy_few(in, out, [&](const float* from, float* to) { __builtin_memcpy(to, from, size); });
}
__global__ void copies_by_library(const float* in, float* out, size_t size) {
  copy_few(in, out, [&](const float* from, float* to) { std::copy(from, from + size / 4, to); });
}

CASE(calls_memmove) {
  Device<float> in(64), out(32);
  moves<<<1, 32>>>(in.data, out.data, 256);
}
CASE(calls_builtin_memcpy) {
  Device<float> in(64), out(32);
  copies_builtin<<<1, 32>>>(in.data, out.data, 256);
}
CASE(calls_std_copy) {
  Device<float> in(64), out(32);
  copies_by_library<<<1, 32>>>(in.data, out.data, 256);
}

__global__ void works_a_little(float* out) {
  if (blockIdx.x < 2 && threadIdx.x < 40) out[threadIdx.x] = 1;
}

CASE(has_warps_without_work) {
  Device<float> out(64);
  works_a_little<<<8, 128>>>(out.data);
}

// Each 32nd float of a kilobyte, side by side.
CASE(copies_on_the_device) {
  Device<float> in(256), out(8);
  cudaMemcpy2D(out.data, 4, in.data, 128, 4, 8, cudaMemcpyDeviceToDevice);
}

CASE(has_256_bytes_of_its_own) {
  Device<float> in(32), out(64);
  remembers<64><<<2, 32>>>(in.data, out.data);
}

CASE(has_8192_bytes_of_its_own) {
  Device<float> in(32), out(64);
  remembers<2048><<<2, 32>>>(in.data, out.data);
}

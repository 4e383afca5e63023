// What a host program asks of the runtime besides memory and launches.
#include <cuda_pipeline.h>

#include <cstring>

#include "check.h"

static cudaError_t last(cudaError_t error) {
  CHECK(cudaGetLastError() == error);
  return error;
}

__device__ float table[8];
__constant__ int offset;

__global__ void add_offset() { table[threadIdx.x] += offset; }
__global__ void twice(float* values) { values[threadIdx.x] *= 2; }

CASE(symbols_are_copied_in_streams_and_have_addresses) {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream) == cudaSuccess);
  float in[8] = {0, 1, 2, 3, 4, 5, 6, 7}, out[8], part[2];
  int ten = 10;
  CHECK(cudaMemcpyToSymbolAsync(table, in, sizeof in, 0, cudaMemcpyHostToDevice, stream) ==
        cudaSuccess);
  CHECK(cudaMemcpyToSymbol(offset, &ten, sizeof ten) == cudaSuccess);
  add_offset<<<1, 8, 0, stream>>>();
  float* address;
  size_t size;
  CHECK(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), table) == cudaSuccess);
  CHECK(cudaGetSymbolSize(&size, table) == cudaSuccess && size == sizeof table);
  twice<<<1, 4, 0, stream>>>(address);
  CHECK(cudaMemcpyFromSymbolAsync(part, table, sizeof part, 3 * sizeof(float),
                                  cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess && part[0] == 26 && part[1] == 14);
  CHECK(cudaMemcpy(out, address, sizeof out, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(out[0] == 20 && out[3] == 26 && out[7] == 17);
  CHECK(cudaMemset(address, 0, sizeof out) == cudaSuccess);
  CHECK(cudaMemcpyFromSymbol(out, table, sizeof out) == cudaSuccess && out[5] == 0);
  CHECK(last(cudaFree(address)) == cudaErrorInvalidValue);
  CHECK(last(cudaMemcpyToSymbol(table, in, sizeof in, 4)) == cudaErrorInvalidValue);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

CASE(rectangles_are_set_and_copied) {
  const size_t width = 12, height = 5;
  char *image, in[height][20], out[height][16];
  size_t pitch;
  for (size_t i = 0; i < sizeof in; ++i) (&in[0][0])[i] = static_cast<char>(i);
  CHECK(cudaMallocPitch(&image, &pitch, width, height) == cudaSuccess && pitch >= width);
  CHECK(cudaMemset2DAsync(image, pitch, 7, width, height) == cudaSuccess);
  CHECK(cudaMemcpy2DAsync(image + pitch, pitch, in[1], 20, 10, height - 1,
                          cudaMemcpyHostToDevice) == cudaSuccess);
  std::memset(out, 1, sizeof out);
  CHECK(cudaMemcpy2D(out, 16, image, pitch, width, height, cudaMemcpyDeviceToHost) == cudaSuccess);
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < 16; ++x)
      CHECK(out[y][x] == (x >= width ? 1 : y == 0 || x >= 10 ? 7 : in[y][x]));
  CHECK(last(cudaMemcpy2D(out, 8, image, pitch, width, height, cudaMemcpyDeviceToHost)) ==
        cudaErrorInvalidPitchValue);
  CHECK(cudaFree(image) == cudaSuccess);
}

static void count(void* data) { ++*static_cast<int*>(data); }

CASE(streams_wait_and_call_the_host) {
  cudaStream_t a, b;
  cudaEvent_t event;
  int calls = 0, least, greatest;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess && least >= greatest);
  CHECK(cudaStreamCreate(&a) == cudaSuccess);
  CHECK(cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, greatest) == cudaSuccess);
  CHECK(cudaEventCreate(&event) == cudaSuccess && cudaEventRecord(event, a) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(b, event, 0) == cudaSuccess);
  CHECK(cudaLaunchHostFunc(b, count, &calls) == cudaSuccess);
  CHECK(cudaStreamSynchronize(b) == cudaSuccess && calls == 1);
  CHECK(cudaStreamDestroy(a) == cudaSuccess && cudaStreamDestroy(b) == cudaSuccess);
}

CASE(pointers_tell_whose_they_are) {
  Device<float> device(4);
  float *pinned, *managed, *mapped, here[4];
  CHECK(cudaMallocHost(&pinned, 16) == cudaSuccess &&
        cudaMallocManaged(&managed, 16) == cudaSuccess);
  cudaPointerAttributes a;
  CHECK(cudaPointerGetAttributes(&a, device.data + 1) == cudaSuccess);
  CHECK(a.type == cudaMemoryTypeDevice && a.devicePointer == device.data + 1);
  CHECK(cudaPointerGetAttributes(&a, pinned) == cudaSuccess && a.type == cudaMemoryTypeHost);
  CHECK(cudaPointerGetAttributes(&a, managed) == cudaSuccess && a.type == cudaMemoryTypeManaged);
  CHECK(cudaPointerGetAttributes(&a, here) == cudaSuccess && a.type == cudaMemoryTypeUnregistered);
  pinned[0] = 3;
  CHECK(cudaHostGetDevicePointer(&mapped, pinned, 0) == cudaSuccess);
  twice<<<1, 1>>>(mapped);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && pinned[0] == 6);
  CHECK(cudaHostRegister(here, sizeof here, cudaHostRegisterDefault) == cudaSuccess);
  CHECK(cudaPointerGetAttributes(&a, here) == cudaSuccess && a.type == cudaMemoryTypeHost);
  CHECK(cudaHostUnregister(here) == cudaSuccess && cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaFree(managed) == cudaSuccess);
}

CASE(kernels_and_the_device_are_described) {
  cudaFuncAttributes attributes;
  int grid, block, blocks;
  size_t value;
  CHECK(cudaFuncGetAttributes(&attributes, twice) == cudaSuccess);
  CHECK(attributes.maxThreadsPerBlock == 1024 && attributes.numRegs > 0);
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, twice) == cudaSuccess);
  CHECK(block > 0 && block <= 1024 && block % 32 == 0 && grid > 0);
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, twice, 0, 128) == cudaSuccess);
  CHECK(block == 128);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, twice, 128, 0) == cudaSuccess);
  CHECK(blocks > 0 && grid % blocks == 0);
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20) == cudaSuccess);
  CHECK(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize) == cudaSuccess && value >= 32 << 20);
  CHECK(cudaDeviceGetLimit(&value, cudaLimitStackSize) == cudaSuccess && value >= 1024);
  CHECK(cudaFuncSetCacheConfig(twice, cudaFuncCachePreferShared) == cudaSuccess);
}

__global__ void stage(const float4* in, float4* out) {
  __shared__ float4 tile[32];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(float4));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

CASE(copies_into_shared_memory_are_waited_for) {
  std::vector<float4> in(32);
  for (int i = 0; i < 32; ++i) in[i] = make_float4(i, 2 * i, 3 * i, 4 * i);
  Device<float4> from(in), to(32);
  stage<<<1, 32>>>(from.data, to.data);
  for (int i = 0; i < 32; ++i) CHECK(to.get()[i].x == 31 - i && to.get()[i].w == 4 * (31 - i));
}

__global__ void first_of(const float* a, int n, float* out, const float* b) {
  if (a == nullptr && b == nullptr) out[0] = n;
}

// A parameter of the name `kernel` on purpose.
#define RUN(kernel, ...) kernel<<<1, 1>>>(__VA_ARGS__)

CASE(zero_and_null_are_pointers_where_a_kernel_wants_one) {
  Device<float> out(1);
  first_of<<<1, 1>>>(0, 5, out.data, 0);
  CHECK(out.get()[0] == 5);
  first_of<<<1, 1>>>(NULL, 0, out.data, NULL);
  CHECK(out.get()[0] == 0);
  RUN(first_of, NULL, 3, out.data, NULL);
  CHECK(out.get()[0] == 3);
}

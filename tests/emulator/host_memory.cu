// Memory that both sides see, boxes of memory, pools, and launches by cudaLaunchKernel.
#include <cstring>

#include "check.h"

static cudaError_t last(cudaError_t error) {
  CHECK(cudaGetLastError() == error);
  return error;
}

__managed__ int counters[4];

__global__ void tally() { atomicAdd(&counters[threadIdx.x % 4], 1); }
__global__ void scale(float* values, int n, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= factor;
}

CASE(managed_memory_takes_advice) {
  float* values;
  int where, who[3];
  const size_t size = 1000 * sizeof(float);
  CHECK(cudaMallocManaged(&values, size) == cudaSuccess);
  for (int i = 0; i < 1000; ++i) values[i] = i;
  CHECK(cudaMemAdvise(values, size, cudaMemAdviseSetPreferredLocation, 0) == cudaSuccess);
  CHECK(cudaMemAdvise(values, size, cudaMemAdviseSetAccessedBy, cudaCpuDeviceId) == cudaSuccess);
  CHECK(cudaMemPrefetchAsync(values, size, 0) == cudaSuccess);
  scale<<<4, 256>>>(values, 1000, 3);
  CHECK(cudaMemPrefetchAsync(values, size, cudaCpuDeviceId, 0) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && values[999] == 2997);
  CHECK(cudaMemRangeGetAttribute(&where, sizeof where, cudaMemRangeAttributeLastPrefetchLocation,
                                 values, size) == cudaSuccess);
  CHECK(where == cudaCpuDeviceId);
  CHECK(cudaMemRangeGetAttribute(who, sizeof who, cudaMemRangeAttributeAccessedBy, values, size) ==
        cudaSuccess);
  CHECK(who[0] == cudaCpuDeviceId && who[1] == cudaInvalidDeviceId);
  CHECK(last(cudaMemPrefetchAsync(values, size, 3)) == cudaErrorInvalidDevice);
  CHECK(last(cudaMemPrefetchAsync(values, size + 1, 0)) == cudaErrorInvalidValue);
  CHECK(cudaStreamAttachMemAsync(0, values, 0, cudaMemAttachGlobal) == cudaSuccess);
  CHECK(cudaFree(values) == cudaSuccess);
}

CASE(places_are_named_as_in_cuda_13_too) {
  float* values;
  CHECK(cudaMallocManaged(&values, 64) == cudaSuccess);
  cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0};
  CHECK(cudaMemAdvise(values, 64, cudaMemAdviseSetReadMostly, gpu) == cudaSuccess);
  CHECK(cudaMemPrefetchAsync(values, 64, gpu, 0) == cudaSuccess);
  int where = -5;
  CHECK(cudaMemRangeGetAttribute(&where, sizeof where, cudaMemRangeAttributeLastPrefetchLocation,
                                 values, 64) == cudaSuccess &&
        where == 0);
  CHECK(cudaMemPrefetchAsync(values, 64, cpu, 0, 0) == cudaSuccess);
  gpu.id = 7;
  CHECK(last(cudaMemPrefetchAsync(values, 64, gpu, 0, 0)) == cudaErrorInvalidDevice);
  Device<float> device(16);
  CHECK(last(cudaMemPrefetchAsync(device.data, 64, 0, 0)) == cudaErrorInvalidValue);
  CHECK(cudaFree(values) == cudaSuccess);
}

CASE(managed_variables_are_seen_by_both) {
  counters[1] = 10;
  CHECK(cudaMemPrefetchAsync(counters, sizeof counters, 0, 0) == cudaSuccess);
  tally<<<8, 64>>>();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(counters[0] == 128 && counters[1] == 138 && counters[3] == 128);
}

int plain_counters[4];

CASE(managed_variables_are_copied) {
  const int values[] = {1, 2, 3, 4};
  int back[4] = {};
  CHECK(cudaMemcpy(counters, values, sizeof values, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(back, counters, sizeof back, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(counters[1] == 2 && back[3] == 4);
  CHECK(cudaMemset(counters + 1, 0, 2 * sizeof(int)) == cudaSuccess);
  CHECK(counters[0] == 1 && counters[1] == 0 && counters[2] == 0 && counters[3] == 4);
  CHECK(cudaMemset(counters + 3, 0, 4 * sizeof(int)) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(plain_counters, values, sizeof values, cudaMemcpyHostToDevice) ==
        cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
}

CASE(mapped_memory_keeps_its_flags) {
  float *host, *device;
  unsigned flags;
  CHECK(cudaHostAlloc(&host, 256, cudaHostAllocMapped | cudaHostAllocWriteCombined) == cudaSuccess);
  CHECK(cudaHostGetFlags(&flags, host) == cudaSuccess);
  CHECK(flags == (cudaHostAllocMapped | cudaHostAllocWriteCombined));
  CHECK(cudaHostGetDevicePointer(&device, host, 0) == cudaSuccess);
  for (int i = 0; i < 64; ++i) host[i] = i;
  scale<<<1, 64>>>(device, 64, 2);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && host[63] == 126);
  CHECK(cudaFreeHost(host) == cudaSuccess);
  CHECK(last(cudaHostGetFlags(&flags, host)) == cudaErrorInvalidValue);
  CHECK(last(cudaHostAlloc(&host, 256, 0x80)) == cudaErrorInvalidValue);
  float here[4];
  CHECK(cudaHostRegister(here, sizeof here, cudaHostRegisterMapped) == cudaSuccess);
  CHECK(last(cudaHostRegister(here, sizeof here, 0)) == cudaErrorHostMemoryAlreadyRegistered);
  CHECK(cudaHostUnregister(here) == cudaSuccess);
  CHECK(last(cudaHostUnregister(here)) == cudaErrorHostMemoryNotRegistered);
}

__global__ void fill_box(cudaPitchedPtr box, cudaExtent extent) {
  unsigned x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
  char* slice = static_cast<char*>(box.ptr) + z * box.pitch * extent.height;
  reinterpret_cast<int*>(slice + y * box.pitch)[x] = 100 * z + 10 * y + x;
}

CASE(boxes_are_copied_and_set) {
  const int width = 5, height = 4, depth = 3;
  cudaExtent extent = make_cudaExtent(width * sizeof(int), height, depth);
  cudaPitchedPtr box;
  CHECK(cudaMalloc3D(&box, extent) == cudaSuccess);
  CHECK(box.pitch >= extent.width && box.xsize == extent.width && box.ysize == height);
  CHECK(cudaMemset3D(box, 0, extent) == cudaSuccess);
  fill_box<<<depth, dim3(width, height)>>>(box, extent);
  std::vector<int> host(width * height * depth, -1);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = box;
  copy.dstPtr = make_cudaPitchedPtr(host.data(), width * sizeof(int), width, height);
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&copy) == cudaSuccess);
  for (int i = 0; i < width * height * depth; ++i)
    CHECK(host[i] == 100 * (i / (width * height)) + 10 * (i / width % height) + i % width);
  // A part of it: two columns and rows of the last two slices, to the beginning.
  copy.srcPos = make_cudaPos(3 * sizeof(int), 2, 1);
  copy.extent = make_cudaExtent(2 * sizeof(int), 2, 2);
  CHECK(cudaMemcpy3DAsync(&copy, 0) == cudaSuccess);
  CHECK(host[0] == 123 && host[1] == 124 && host[width] == 133 && host[2] == 2);
  CHECK(host[width * height + width + 1] == 234);
  copy.extent.depth = 3;
  host[0] = 7;
  CHECK(last(cudaMemcpy3D(&copy)) == cudaErrorInvalidValue && host[0] == 7);
  CHECK(cudaFree(box.ptr) == cudaSuccess);
}

CASE(copies_find_their_direction) {
  std::vector<int> in = {1, 2, 3}, out(3);
  Device<int> a(3), b(3);
  CHECK(cudaMemcpy(a.data, in.data(), 12, cudaMemcpyDefault) == cudaSuccess);
  CHECK(cudaMemcpy(b.data, a.data, 12, cudaMemcpyDefault) == cudaSuccess);
  CHECK(cudaMemcpy(out.data(), b.data, 12, cudaMemcpyDefault) == cudaSuccess && out == in);
}

CASE(pools_give_memory) {
  cudaMemPool_t pool, other;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess);
  uint64_t threshold = UINT64_MAX, got = 0, used = 0;
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold) == cudaSuccess);
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &got) == cudaSuccess);
  CHECK(got == threshold);
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  CHECK(cudaMemPoolCreate(&other, &properties) == cudaSuccess);
  float *a, *b;
  CHECK(cudaMallocFromPoolAsync(&a, 4096, other, 0) == cudaSuccess);
  CHECK(cudaMallocAsync(&b, 64, pool, 0) == cudaSuccess);
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
  CHECK(used == 64);  // of the pool alone
  CHECK(cudaMemsetAsync(a, 0, 4096) == cudaSuccess);
  CHECK(cudaFreeAsync(a, 0) == cudaSuccess && cudaFreeAsync(b, 0) == cudaSuccess);
  CHECK(cudaMemPoolTrimTo(other, 0) == cudaSuccess && cudaMemPoolDestroy(other) == cudaSuccess);
  CHECK(last(cudaMallocFromPoolAsync(&a, 64, other, 0)) == cudaErrorInvalidValue);
}

template <typename T>
__global__ void add(const T* a, const T* b, T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

CASE(kernels_are_launched_by_their_address) {
  Device<float> values(std::vector<float>{1, 2, 3});
  int n = 2;
  float factor = 10;
  void* args[] = {&values.data, &n, &factor};
  CHECK(cudaLaunchKernel((void*)scale, dim3(1), dim3(32), args, 0, 0) == cudaSuccess);
  CHECK(cudaLaunchKernel(scale, 1, 32, args) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(values.get() == std::vector<float>({100, 200, 3}));
  Device<double> a(std::vector<double>{1, 2}), b(std::vector<double>{3, 4}), out(2);
  const double *in_a = a.data, *in_b = b.data;
  void* more[] = {&in_a, &in_b, &out.data, &n};
  CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(&add<double>), dim3(2), dim3(1), more, 0,
                         nullptr) == cudaSuccess);
  CHECK(out.get() == std::vector<double>({4, 6}));
  CHECK(cudaLaunchKernel(scale, 1, 2048, args) == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
}

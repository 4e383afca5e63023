// What programs ask about the device, its kernels and streams before they begin.
#include <cuda_profiler_api.h>

#include <cstring>

#include "check.h"

// What helper headers look for, before they declare functions for it.
#if !defined(__CUDA_RUNTIME_H__) || !defined(__DRIVER_TYPES_H__) || \
    !defined(__CUDA_RUNTIME_API_H__) || !defined(__VECTOR_TYPES_H__)
#error a guard of NVIDIA's headers is missing
#endif

static cudaError_t last(cudaError_t error) {
  CHECK(cudaGetLastError() == error);
  return error;
}

static int attribute(cudaDeviceAttr which) {
  int value = -1;
  CHECK(cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess);
  return value;
}

__global__ void twice(float* values) { values[threadIdx.x] *= 2; }

CASE(properties_and_attributes_agree) {
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0) == cudaSuccess);
  CHECK(p.clockRate > 0 && p.clockRate == attribute(cudaDevAttrClockRate));
  CHECK(p.memoryClockRate > 0 && p.memoryClockRate == attribute(cudaDevAttrMemoryClockRate));
  CHECK(p.major == attribute(cudaDevAttrComputeCapabilityMajor));
  CHECK(p.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount));
  CHECK(p.maxThreadsDim[2] == attribute(cudaDevAttrMaxBlockDimZ) && p.maxThreadsDim[2] == 64);
  CHECK(p.maxGridSize[1] == attribute(cudaDevAttrMaxGridDimY) && p.maxGridSize[1] == 65535);
  CHECK(static_cast<int>(p.sharedMemPerBlock) == attribute(cudaDevAttrMaxSharedMemoryPerBlock));
  CHECK(static_cast<int>(p.memPitch) == attribute(cudaDevAttrMaxPitch));
  CHECK(p.regsPerBlock == attribute(cudaDevAttrMaxRegistersPerBlock));
  CHECK(p.deviceOverlap == attribute(cudaDevAttrGpuOverlap) && p.kernelExecTimeoutEnabled == 0);
  CHECK(p.computeMode == cudaComputeModeDefault && p.canMapHostMemory == 1 && p.ECCEnabled == 0);
  CHECK(p.managedMemory == 1 && p.concurrentManagedAccess == 1 && p.cooperativeLaunch == 0);
  CHECK(attribute(cudaDevAttrCooperativeLaunch) == 0 && attribute(cudaDevAttrHostNumaId) == 0);
  int value;
  CHECK(last(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(4711), 0)) ==
        cudaErrorInvalidValue);
  CHECK(last(cudaGetDeviceProperties(&p, 1)) == cudaErrorInvalidDevice);
}

CASE(the_device_is_found_by_its_bus) {
  char id[16], small[4];
  int device = -1;
  cudaDeviceProp p;
  CHECK(cudaDeviceGetPCIBusId(id, sizeof id, 0) == cudaSuccess);
  CHECK(cudaDeviceGetByPCIBusId(&device, id) == cudaSuccess && device == 0);
  CHECK(last(cudaDeviceGetByPCIBusId(&device, "0000:ff:00.0")) == cudaErrorInvalidValue);
  CHECK(last(cudaDeviceGetPCIBusId(small, sizeof small, 0)) == cudaErrorInvalidValue);
  CHECK(cudaGetDeviceProperties(&p, 0) == cudaSuccess);
  CHECK(std::strtol(id + 5, nullptr, 16) == p.pciBusID);
  std::memset(&p, 0, sizeof p);
  p.major = 7;
  device = -1;
  CHECK(cudaChooseDevice(&device, &p) == cudaSuccess && device == 0);
  CHECK(last(cudaDeviceDisablePeerAccess(1)) == cudaErrorInvalidDevice);
}

CASE(settings_are_kept) {
  unsigned flags = 0;
  CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync | cudaDeviceMapHost) == cudaSuccess);
  CHECK(cudaGetDeviceFlags(&flags) == cudaSuccess);
  CHECK(flags == (cudaDeviceScheduleBlockingSync | cudaDeviceMapHost));
  CHECK(last(cudaSetDeviceFlags(0x1000)) == cudaErrorInvalidValue);
  cudaFuncCache cache;
  CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1) == cudaSuccess);
  CHECK(cudaDeviceGetCacheConfig(&cache) == cudaSuccess && cache == cudaFuncCachePreferL1);
  cudaSharedMemConfig banks;
  CHECK(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte) == cudaSuccess);
  CHECK(cudaDeviceGetSharedMemConfig(&banks) == cudaSuccess);
  CHECK(banks == cudaSharedMemBankSizeFourByte);
  CHECK(cudaFuncSetSharedMemConfig(twice, cudaSharedMemBankSizeFourByte) == cudaSuccess);
  CHECK(cudaProfilerStart() == cudaSuccess && cudaProfilerStop() == cudaSuccess);
}

CASE(streams_know_how_they_were_made) {
  cudaStream_t stream;
  int least, greatest, priority;
  unsigned flags;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess && greatest < least);
  CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 10) == cudaSuccess);
  CHECK(cudaStreamGetPriority(stream, &priority) == cudaSuccess && priority == greatest);
  CHECK(cudaStreamGetFlags(stream, &flags) == cudaSuccess && flags == cudaStreamNonBlocking);
  CHECK(cudaStreamGetFlags(cudaStreamPerThread, &flags) == cudaSuccess && flags == 0);
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event, cudaEventDisableTiming) == cudaSuccess);
  CHECK(cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault) == cudaSuccess);
  CHECK(cudaEventDestroy(event) == cudaSuccess && cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(last(cudaStreamGetPriority(stream, &priority)) == cudaErrorInvalidResourceHandle);
  Device<float> values(std::vector<float>{1, 2});
  twice<<<1, 2, 0, cudaStreamPerThread>>>(values.data);
  twice<<<1, 2, 0, cudaStreamLegacy>>>(values.data);
  CHECK(cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess && values.get()[1] == 8);
}

static size_t floats_of(int block) { return block * sizeof(float); }

CASE(blocks_are_chosen_by_the_shared_memory_that_they_take) {
  int grid, block, blocks;
  CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, twice, floats_of) ==
        cudaSuccess);
  CHECK(block == 1024 && grid == 32);
  // 1 KB a thread: 228 KB take 228 threads, and no block more than 227 KB.
  CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(
            &grid, &block, twice, [](int size) { return size_t(1024) * size; }) == cudaSuccess);
  CHECK(block == 224 && grid == 16);
  CHECK(cudaOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, twice, 0, 0,
                                                    cudaOccupancyDefault) == cudaSuccess);
  CHECK(block == 1024);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &blocks, twice, 256, 0, cudaOccupancyDisableCachingOverride) == cudaSuccess);
  CHECK(blocks == 8);
  size_t shared = 0;
  CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&shared, twice, 4, 256) == cudaSuccess);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, twice, 256, shared) == cudaSuccess);
  CHECK(blocks >= 4);
}

CASE(every_error_has_a_name) {
  CHECK(std::strcmp(cudaGetErrorName(cudaErrorInvalidPtx), "cudaErrorInvalidPtx") == 0);
  CHECK(std::strcmp(cudaGetErrorName(static_cast<cudaError_t>(209)),
                    "cudaErrorNoKernelImageForDevice") == 0);
  CHECK(std::strcmp(cudaGetErrorString(cudaErrorCooperativeLaunchTooLarge),
                    "too many blocks in cooperative launch") == 0);
  CHECK(std::strcmp(cudaGetErrorName(static_cast<cudaError_t>(4711)), "unrecognized error code") ==
        0);
}

/*!
 * \file device.cc
 * \brief The one device there is, and what programs may ask about it.
 */
#include "device.h"

#include <atomic>
#include <cstdio>
#include <cstring>

#include "arena.h"
#include "block.h"
#include "cuda_runtime.h"
#include "error.h"

namespace emulator {
namespace {

const int kMultiprocessors = 16, kThreadsPerMultiprocessor = 2048, kBlocksPerMultiprocessor = 32;
const int kRegisters = 65536, kClockKHz = 1000000, kMemoryClockKHz = 1000000, kBusBits = 256;
const int kL2Cache = 4 << 20, kConstantMemory = 64 * 1024;
const size_t kSharedPerMultiprocessor = 228 * 1024;
const int kMajor = 9, kMinor = 0;

struct Attribute {
  cudaDeviceAttr attribute;
  int value;
};

const Attribute kAttributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, kMaxThreads},
    {cudaDevAttrMaxBlockDimX, kMaxBlockXY},
    {cudaDevAttrMaxBlockDimY, kMaxBlockXY},
    {cudaDevAttrMaxBlockDimZ, kMaxBlockZ},
    {cudaDevAttrMaxGridDimX, kMaxGridX},
    {cudaDevAttrMaxGridDimY, kMaxGridYZ},
    {cudaDevAttrMaxGridDimZ, kMaxGridYZ},
    {cudaDevAttrMaxSharedMemoryPerBlock, kSharedMemory},
    {cudaDevAttrTotalConstantMemory, kConstantMemory},
    {cudaDevAttrWarpSize, kWarp},
    {cudaDevAttrMaxRegistersPerBlock, kRegisters},
    {cudaDevAttrClockRate, kClockKHz},
    {cudaDevAttrMultiProcessorCount, kMultiprocessors},
    {cudaDevAttrMemoryClockRate, kMemoryClockKHz},
    {cudaDevAttrGlobalMemoryBusWidth, kBusBits},
    {cudaDevAttrL2CacheSize, kL2Cache},
    {cudaDevAttrMaxThreadsPerMultiProcessor, kThreadsPerMultiprocessor},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrComputeCapabilityMajor, kMajor},
    {cudaDevAttrComputeCapabilityMinor, kMinor},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, kSharedPerMultiprocessor},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrCooperativeLaunch, 0},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, kSharedMemoryOptin},
};

void fill(cudaDeviceProp* p) {
  std::memset(p, 0, sizeof *p);
  std::snprintf(p->name, sizeof p->name, "Emulated GPU");
  p->totalGlobalMem = arena_capacity();
  p->sharedMemPerBlock = kSharedMemory;
  p->sharedMemPerBlockOptin = kSharedMemoryOptin;
  p->sharedMemPerMultiprocessor = kSharedPerMultiprocessor;
  p->regsPerBlock = p->regsPerMultiprocessor = kRegisters;
  p->warpSize = kWarp;
  p->maxThreadsPerBlock = kMaxThreads;
  p->maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
  p->maxBlocksPerMultiProcessor = kBlocksPerMultiprocessor;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = kMaxBlockXY;
  p->maxThreadsDim[2] = kMaxBlockZ;
  p->maxGridSize[0] = kMaxGridX;
  p->maxGridSize[1] = p->maxGridSize[2] = kMaxGridYZ;
  p->clockRate = kClockKHz;
  p->memoryClockRate = kMemoryClockKHz;
  p->memoryBusWidth = kBusBits;
  p->totalConstMem = kConstantMemory;
  p->l2CacheSize = kL2Cache;
  p->major = kMajor;
  p->minor = kMinor;
  p->multiProcessorCount = kMultiprocessors;
  p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = p->managedMemory = 1;
}

}  // namespace
}  // namespace emulator

using emulator::report;

cudaError_t cudaDeviceSynchronize() {
  std::fflush(stdout);  // a GPU's printf appears now too
  EMULATOR_RETURN_IF_STICKY();
  EMULATOR_CHECK(host_waits_for_all());
  return cudaSuccess;
}

cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }

cudaError_t cudaSetDevice(int device) {
  EMULATOR_RETURN_IF_STICKY();
  return report(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int* device) {
  EMULATOR_RETURN_IF_STICKY();
  if (device == nullptr) return report(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return report(cudaErrorInvalidValue);
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  EMULATOR_RETURN_IF_STICKY();
  if (properties == nullptr) return report(cudaErrorInvalidValue);
  if (device != 0) return report(cudaErrorInvalidDevice);
  emulator::fill(properties);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  EMULATOR_RETURN_IF_STICKY();
  if (device != 0) return report(cudaErrorInvalidDevice);
  for (const emulator::Attribute& known : emulator::kAttributes) {
    if (value == nullptr || known.attribute != attribute) continue;
    *value = known.value;
    return cudaSuccess;
  }
  return report(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  EMULATOR_RETURN_IF_STICKY();
  if (can_access == nullptr) return report(cudaErrorInvalidValue);
  if (device != 0 || peer != 0) return report(cudaErrorInvalidDevice);
  *can_access = 0;  // a device is no peer of itself
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return report(cudaErrorInvalidDevice); }

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return report(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  EMULATOR_RETURN_IF_STICKY();
  if (kernel == nullptr) return report(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return report(emulator::set_shared_limit(value));
}

// As if threads, blocks and shared memory were the only limits: registers are not known.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel,
                                                          int block_size, size_t shared) {
  EMULATOR_RETURN_IF_STICKY();
  if (blocks == nullptr || block_size <= 0) return report(cudaErrorInvalidValue);
  if (kernel == nullptr) return report(cudaErrorInvalidDeviceFunction);
  int most = emulator::kBlocksPerMultiprocessor;
  int by_threads = emulator::kThreadsPerMultiprocessor / block_size;
  if (block_size > emulator::kMaxThreads) by_threads = 0;
  if (by_threads < most) most = by_threads;
  if (shared > 0) {
    int by_shared = static_cast<int>(emulator::kSharedPerMultiprocessor / shared);
    if (by_shared < most) most = by_shared;
  }
  *blocks = most;
  return cudaSuccess;
}

// A number that no program should build upon is one of a small kernel.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  EMULATOR_RETURN_IF_STICKY();
  if (attributes == nullptr) return report(cudaErrorInvalidValue);
  if (kernel == nullptr) return report(cudaErrorInvalidDeviceFunction);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = emulator::kMaxThreads;
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = emulator::kMajor * 10 + emulator::kMinor;
  attributes->maxDynamicSharedSizeBytes = emulator::kSharedMemory;
  attributes->preferredShmemCarveout = -1;
  return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void* kernel, cudaFuncCache) {
  EMULATOR_RETURN_IF_STICKY();
  return report(kernel != nullptr ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  EMULATOR_RETURN_IF_STICKY();
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned) {
  EMULATOR_RETURN_IF_STICKY();
  return cudaSuccess;
}

namespace emulator {
namespace {

// Stack, printf, malloc; kept for those who ask, and heeded by none.
std::atomic<size_t> limits[] = {{1024}, {1 << 20}, {8 << 20}};

bool is_limit(cudaLimit limit) {
  return limit >= cudaLimitStackSize && limit <= cudaLimitMallocHeapSize;
}

}  // namespace

cudaError_t max_potential_block_size(int* grid, int* block, size_t shared, int limit) {
  EMULATOR_RETURN_IF_STICKY();
  if (grid == nullptr || block == nullptr || limit < 0) return report(cudaErrorInvalidValue);
  *block = limit == 0 || limit > kMaxThreads ? kMaxThreads : limit;
  int blocks = 0;
  cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, block, *block, shared);
  *grid = blocks * kMultiprocessors;
  return error;
}

}  // namespace emulator

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_limit(limit)) return report(cudaErrorUnsupportedLimit);
  emulator::limits[limit] = value;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  EMULATOR_RETURN_IF_STICKY();
  if (value == nullptr) return report(cudaErrorInvalidValue);
  if (!emulator::is_limit(limit)) return report(cudaErrorUnsupportedLimit);
  *value = emulator::limits[limit];
  return cudaSuccess;
}

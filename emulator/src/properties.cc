/*!
 * \file properties.cc
 * \brief The device as cudaGetDeviceProperties and cudaDeviceGetAttribute tell it.
 *
 * What the emulated GPU has not, textures and launches of a whole grid among it, is 0.
 */
#include "properties.h"

#include <cstdio>
#include <cstring>

#include "arena.h"
#include "block.h"

namespace emulator {
namespace {

const int kRegisters = 65536, kClockKHz = 1000000, kMemoryClockKHz = 1000000, kBusBits = 256;
const int kL2Cache = 4 << 20, kConstantMemory = 64 * 1024;

void fill_sizes(cudaDeviceProp* p) {
  p->totalGlobalMem = arena_capacity();
  p->sharedMemPerBlock = kSharedMemory;
  p->sharedMemPerBlockOptin = kSharedMemoryOptin;
  p->sharedMemPerMultiprocessor = kSharedPerMultiprocessor;
  p->reservedSharedMemPerBlock = kReservedShared;
  p->regsPerBlock = p->regsPerMultiprocessor = kRegisters;
  p->totalConstMem = kConstantMemory;
  p->l2CacheSize = kL2Cache;
  p->memPitch = 2147483647;
  p->textureAlignment = p->surfaceAlignment = 512;
  p->texturePitchAlignment = 32;
}

void fill_grid(cudaDeviceProp* p) {
  p->warpSize = kWarp;
  p->maxThreadsPerBlock = kMaxThreads;
  p->maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
  p->maxBlocksPerMultiProcessor = kBlocksPerMultiprocessor;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = kMaxBlockXY;
  p->maxThreadsDim[2] = kMaxBlockZ;
  p->maxGridSize[0] = kMaxGridX;
  p->maxGridSize[1] = p->maxGridSize[2] = kMaxGridYZ;
  p->multiProcessorCount = kMultiprocessors;
}

struct Attribute {
  cudaDeviceAttr attribute;
  int cudaDeviceProp::* field;
};

// The attributes that are a field of the properties; those that are not are below.
const Attribute kFields[] = {
    {cudaDevAttrMaxThreadsPerBlock, &cudaDeviceProp::maxThreadsPerBlock},
    {cudaDevAttrWarpSize, &cudaDeviceProp::warpSize},
    {cudaDevAttrMaxRegistersPerBlock, &cudaDeviceProp::regsPerBlock},
    {cudaDevAttrMaxRegistersPerMultiprocessor, &cudaDeviceProp::regsPerMultiprocessor},
    {cudaDevAttrClockRate, &cudaDeviceProp::clockRate},
    {cudaDevAttrGpuOverlap, &cudaDeviceProp::deviceOverlap},
    {cudaDevAttrMultiProcessorCount, &cudaDeviceProp::multiProcessorCount},
    {cudaDevAttrCanMapHostMemory, &cudaDeviceProp::canMapHostMemory},
    {cudaDevAttrConcurrentKernels, &cudaDeviceProp::concurrentKernels},
    {cudaDevAttrPciBusId, &cudaDeviceProp::pciBusID},
    {cudaDevAttrMemoryClockRate, &cudaDeviceProp::memoryClockRate},
    {cudaDevAttrGlobalMemoryBusWidth, &cudaDeviceProp::memoryBusWidth},
    {cudaDevAttrL2CacheSize, &cudaDeviceProp::l2CacheSize},
    {cudaDevAttrMaxThreadsPerMultiProcessor, &cudaDeviceProp::maxThreadsPerMultiProcessor},
    {cudaDevAttrMaxBlocksPerMultiprocessor, &cudaDeviceProp::maxBlocksPerMultiProcessor},
    {cudaDevAttrAsyncEngineCount, &cudaDeviceProp::asyncEngineCount},
    {cudaDevAttrUnifiedAddressing, &cudaDeviceProp::unifiedAddressing},
    {cudaDevAttrComputeCapabilityMajor, &cudaDeviceProp::major},
    {cudaDevAttrComputeCapabilityMinor, &cudaDeviceProp::minor},
    {cudaDevAttrStreamPrioritiesSupported, &cudaDeviceProp::streamPrioritiesSupported},
    {cudaDevAttrGlobalL1CacheSupported, &cudaDeviceProp::globalL1CacheSupported},
    {cudaDevAttrLocalL1CacheSupported, &cudaDeviceProp::localL1CacheSupported},
    {cudaDevAttrManagedMemory, &cudaDeviceProp::managedMemory},
    {cudaDevAttrConcurrentManagedAccess, &cudaDeviceProp::concurrentManagedAccess},
    {cudaDevAttrComputePreemptionSupported, &cudaDeviceProp::computePreemptionSupported},
    {cudaDevAttrCanUseHostPointerForRegisteredMem,
     &cudaDeviceProp::canUseHostPointerForRegisteredMem},
    {cudaDevAttrHostRegisterSupported, &cudaDeviceProp::hostRegisterSupported},
    {cudaDevAttrMemoryPoolsSupported, &cudaDeviceProp::memoryPoolsSupported},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio,
     &cudaDeviceProp::singleToDoublePrecisionPerfRatio},
};

int other_attribute(int attribute, const cudaDeviceProp& p) {
  switch (attribute) {
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
    case cudaDevAttrMaxBlockDimZ:
      return p.maxThreadsDim[attribute - cudaDevAttrMaxBlockDimX];
    case cudaDevAttrMaxGridDimX:
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return p.maxGridSize[attribute - cudaDevAttrMaxGridDimX];
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(p.sharedMemPerBlock);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(p.sharedMemPerBlockOptin);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(p.sharedMemPerMultiprocessor);
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return static_cast<int>(p.reservedSharedMemPerBlock);
    case cudaDevAttrTotalConstantMemory:
      return static_cast<int>(p.totalConstMem);
    case cudaDevAttrMaxPitch:
      return static_cast<int>(p.memPitch);
    case cudaDevAttrTextureAlignment:
      return static_cast<int>(p.textureAlignment);
    case cudaDevAttrSurfaceAlignment:
      return static_cast<int>(p.surfaceAlignment);
    case cudaDevAttrTexturePitchAlignment:
      return static_cast<int>(p.texturePitchAlignment);
    default:
      return 0;
  }
}

}  // namespace

void fill_properties(cudaDeviceProp* p) {
  std::memset(p, 0, sizeof *p);
  std::snprintf(p->name, sizeof p->name, "Emulated GPU");
  std::snprintf(p->uuid.bytes, sizeof p->uuid.bytes, "emulated GPU 0");
  fill_sizes(p);
  fill_grid(p);
  p->major = kMajor;
  p->minor = kMinor;
  p->clockRate = kClockKHz;
  p->memoryClockRate = kMemoryClockKHz;
  p->memoryBusWidth = kBusBits;
  p->singleToDoublePrecisionPerfRatio = 2;
  p->pciBusID = 1;
  p->asyncEngineCount = p->deviceOverlap = 1;
  p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = 1;
  p->managedMemory = p->concurrentManagedAccess = p->canUseHostPointerForRegisteredMem = 1;
  p->hostRegisterSupported = p->memoryPoolsSupported = p->streamPrioritiesSupported = 1;
  p->globalL1CacheSupported = p->localL1CacheSupported = p->computePreemptionSupported = 1;
}

bool find_attribute(int attribute, int* value) {
  if (attribute < cudaDevAttrMaxThreadsPerBlock ||
      attribute > cudaDevAttrOnlyPartialHostNativeAtomicSupported)
    return false;
  cudaDeviceProp properties;
  fill_properties(&properties);
  *value = other_attribute(attribute, properties);
  for (const Attribute& known : kFields)
    if (known.attribute == attribute) *value = properties.*known.field;
  return true;
}

}  // namespace emulator

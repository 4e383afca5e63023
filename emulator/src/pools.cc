/*!
 * \file pools.cc
 * \brief Pools of memory: names for the device's memory, with settings of their own.
 */
#include <cstdint>
#include <mutex>
#include <set>

#include "arena.h"
#include "cuda_runtime.h"
#include "error.h"
#include "stream.h"

struct CUmemPoolHandle_st {
  int reuse[4];  // by attribute: cudaMemPoolReuseFollowEventDependencies and the next two
  uint64_t threshold, high;
};

namespace emulator {
namespace {

std::mutex mutex;
std::set<cudaMemPool_t> pools;
CUmemPoolHandle_st default_pool = {{0, 1, 1, 1}, 0, 0};
cudaMemPool_t current_pool = &default_pool;

bool is_pool(cudaMemPool_t pool) {
  std::lock_guard<std::mutex> lock(mutex);
  return pool == &default_pool || pools.count(pool) > 0;
}

cudaError_t get_pool(cudaMemPool_t* pool, int device, cudaMemPool_t found) {
  EMULATOR_RETURN_IF_STICKY();
  if (pool == nullptr) return report(cudaErrorInvalidValue);
  if (device != 0) return report(cudaErrorInvalidDevice);
  *pool = found;
  return cudaSuccess;
}

bool is_reuse(cudaMemPoolAttr attribute) {
  return attribute >= cudaMemPoolReuseFollowEventDependencies &&
         attribute <= cudaMemPoolReuseAllowInternalDependencies;
}

}  // namespace
}  // namespace emulator

using emulator::report;

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  EMULATOR_HOST_CALL();
  return emulator::get_pool(pool, device, &emulator::default_pool);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  EMULATOR_HOST_CALL();
  return emulator::get_pool(pool, device, emulator::current_pool);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  EMULATOR_RETURN_IF_STICKY();
  if (device != 0) return report(cudaErrorInvalidDevice);
  if (!emulator::is_pool(pool)) return report(cudaErrorInvalidValue);
  emulator::current_pool = pool;
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  EMULATOR_RETURN_IF_STICKY();
  if (pool == nullptr || properties == nullptr ||
      properties->allocType != cudaMemAllocationTypePinned ||
      properties->location.type != cudaMemLocationTypeDevice)
    return report(cudaErrorInvalidValue);
  if (properties->location.id != 0) return report(cudaErrorInvalidDevice);
  std::lock_guard<std::mutex> lock(emulator::mutex);
  *pool = new CUmemPoolHandle_st{{0, 1, 1, 1}, 0, 0};
  emulator::pools.insert(*pool);
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  EMULATOR_RETURN_IF_STICKY();
  std::lock_guard<std::mutex> lock(emulator::mutex);
  if (emulator::pools.erase(pool) == 0) return report(cudaErrorInvalidValue);
  if (emulator::current_pool == pool) emulator::current_pool = &emulator::default_pool;
  delete pool;
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  EMULATOR_RETURN_IF_STICKY();
  return report(emulator::is_pool(pool) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  EMULATOR_RETURN_IF_STICKY();
  if (value == nullptr || !emulator::is_pool(pool)) return report(cudaErrorInvalidValue);
  if (emulator::is_reuse(attribute))
    pool->reuse[attribute] = *static_cast<int*>(value);
  else if (attribute == cudaMemPoolAttrReleaseThreshold)
    pool->threshold = *static_cast<uint64_t*>(value);
  else if (attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh)
    pool->high = 0;  // a high mark can only be taken back
  else
    return report(cudaErrorInvalidValue);
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  EMULATOR_RETURN_IF_STICKY();
  if (value == nullptr || !emulator::is_pool(pool)) return report(cudaErrorInvalidValue);
  if (emulator::is_reuse(attribute)) {
    *static_cast<int*>(value) = pool->reuse[attribute];
    return cudaSuccess;
  }
  // Nobody counts for each pool: all of the device's memory that is in use now.
  const uint64_t used = emulator::arena_used();
  if (used > pool->high) pool->high = used;
  uint64_t* number = static_cast<uint64_t*>(value);
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      *number = pool->threshold;
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
      *number = used;
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
      *number = pool->high;
      return cudaSuccess;
    default:
      return report(cudaErrorInvalidValue);
  }
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access,
                                 size_t count) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_pool(pool) || (access == nullptr && count > 0))
    return report(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; ++i)
    if (access[i].location.type != cudaMemLocationTypeDevice || access[i].location.id != 0)
      return report(cudaErrorInvalidDevice);
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** ptr, size_t size, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_pool(pool)) return report(cudaErrorInvalidValue);
  return cudaMallocAsync(ptr, size, stream);
}

/*!
 * \file pools.cc
 * \brief Pools of memory: names for the device's memory, with settings and counts of their own.
 *
 * A pool keeps what was freed, until a synchronisation finds more there than its release
 * threshold says. Here it keeps a number, and the device's memory is given back at once.
 */
#include "pools.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "capture.h"
#include "error.h"
#include "stream.h"

struct CUmemPoolHandle_st {
  int reuse[4] = {0, 1, 1, 1};  // by attribute: cudaMemPoolReuseFollowEventDependencies and so on
  uint64_t threshold = 0;
  uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;  // bytes
};

namespace emulator {
namespace {

std::mutex mutex;
std::set<cudaMemPool_t> pools;
CUmemPoolHandle_st default_pool;
cudaMemPool_t chosen_pool = &default_pool;

struct PoolMemory {
  cudaMemPool_t pool;  // null once the pool is gone
  size_t size;
};
// By address. Used until the very end: the program's static objects may free memory.
auto& given = *new std::map<const void*, PoolMemory>;
std::atomic<bool> in_use(false);  // whether anybody ever took memory of a pool

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

// Keeps no more of what is free than `most` bytes in all.
void release(cudaMemPool_t pool, uint64_t most) {
  pool->reserved = std::max(pool->used, std::min(pool->reserved, most));
}

// The number behind an attribute; null if it is none.
uint64_t* find_number(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      return &pool->threshold;
    case cudaMemPoolAttrReservedMemCurrent:
      return &pool->reserved;
    case cudaMemPoolAttrReservedMemHigh:
      return &pool->reserved_high;
    case cudaMemPoolAttrUsedMemCurrent:
      return &pool->used;
    case cudaMemPoolAttrUsedMemHigh:
      return &pool->used_high;
    default:
      return nullptr;
  }
}

bool is_reuse(cudaMemPoolAttr attribute) {
  return attribute >= cudaMemPoolReuseFollowEventDependencies &&
         attribute <= cudaMemPoolReuseAllowInternalDependencies;
}

}  // namespace

cudaMemPool_t current_pool() {
  std::lock_guard<std::mutex> lock(mutex);
  return chosen_pool;
}

void note_pool_memory(cudaMemPool_t pool, void* ptr, size_t size) {
  if (ptr == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex);
  in_use = true;
  given[ptr] = {pool, size};
  pool->used += size;
  pool->used_high = std::max(pool->used_high, pool->used);
  pool->reserved = std::max(pool->reserved, pool->used);
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
}

void forget_pool_memory(void* ptr) {
  if (!in_use) return;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = given.find(ptr);
  if (found == given.end()) return;
  if (found->second.pool != nullptr) found->second.pool->used -= found->second.size;
  given.erase(found);
}

void pools_release() {
  if (!in_use) return;
  std::lock_guard<std::mutex> lock(mutex);
  release(&default_pool, default_pool.threshold);
  for (cudaMemPool_t pool : pools) release(pool, pool->threshold);
}
}  // namespace emulator

using emulator::report;

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  EMULATOR_HOST_CALL();
  return emulator::get_pool(pool, device, &emulator::default_pool);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  EMULATOR_HOST_CALL();
  return emulator::get_pool(pool, device, emulator::current_pool());
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  EMULATOR_RETURN_IF_STICKY();
  if (device != 0) return report(cudaErrorInvalidDevice);
  if (!emulator::is_pool(pool)) return report(cudaErrorInvalidValue);
  std::lock_guard<std::mutex> lock(emulator::mutex);
  emulator::chosen_pool = pool;
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
  *pool = new CUmemPoolHandle_st;
  emulator::pools.insert(*pool);
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  EMULATOR_RETURN_IF_STICKY();
  std::lock_guard<std::mutex> lock(emulator::mutex);
  if (emulator::pools.erase(pool) == 0) return report(cudaErrorInvalidValue);
  if (emulator::chosen_pool == pool) emulator::chosen_pool = &emulator::default_pool;
  for (auto& entry : emulator::given)  // stays until it is freed
    if (entry.second.pool == pool) entry.second.pool = nullptr;
  delete pool;
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_pool(pool)) return report(cudaErrorInvalidValue);
  std::lock_guard<std::mutex> lock(emulator::mutex);
  emulator::release(pool, bytes_to_keep);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  EMULATOR_RETURN_IF_STICKY();
  if (value == nullptr || !emulator::is_pool(pool)) return report(cudaErrorInvalidValue);
  if (emulator::is_reuse(attribute))
    pool->reuse[attribute] = *static_cast<int*>(value);
  else if (attribute == cudaMemPoolAttrReleaseThreshold)
    pool->threshold = *static_cast<uint64_t*>(value);
  else if (*static_cast<uint64_t*>(value) != 0)  // a high mark can only be taken back
    return report(cudaErrorInvalidValue);
  else if (attribute == cudaMemPoolAttrReservedMemHigh)
    pool->reserved_high = pool->reserved;
  else if (attribute == cudaMemPoolAttrUsedMemHigh)
    pool->used_high = pool->used;
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
  std::lock_guard<std::mutex> lock(emulator::mutex);
  const uint64_t* number = emulator::find_number(pool, attribute);
  if (number == nullptr) return report(cudaErrorInvalidValue);
  *static_cast<uint64_t*>(value) = *number;
  return cudaSuccess;
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
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return report(emulator::allocate_in(pool, ptr, size, stream));
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  EMULATOR_RETURN_IF_STICKY();
  if (flags == nullptr || location == nullptr || !emulator::is_pool(pool))
    return report(cudaErrorInvalidValue);
  if (location->type != cudaMemLocationTypeDevice || location->id != 0)
    return report(cudaErrorInvalidDevice);
  *flags = cudaMemAccessFlagsProtReadWrite;
  return cudaSuccess;
}

/*!
 * \file graph_memory.cc
 * \brief Memory of graphs.
 */
#include "graph_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include "arena.h"
#include "checked.h"
#include "error.h"
#include "protection.h"

namespace emulator {
namespace {

std::recursive_mutex mutex;  // the last owner may be found in a search
// Used until the very end: graphs may be static objects of the program.
auto& all = *new std::map<uintptr_t, std::weak_ptr<GraphMemory>>;
size_t used = 0, most = 0;

// NaN for any floating-point type, so that what was never written shows.
void fill(void* ptr, size_t size) {
  DeviceAccess access;
  access.open(ptr);
  std::memset(ptr, 0xff, size);
}

}  // namespace

std::shared_ptr<GraphMemory> GraphMemory::make(size_t size) {
  void* address = nullptr;
  if (arena_allocate(&address, size) != cudaSuccess || address == nullptr) return nullptr;
  std::shared_ptr<GraphMemory> made(new GraphMemory(address, size));
  std::lock_guard<std::recursive_mutex> lock(mutex);
  all[reinterpret_cast<uintptr_t>(address)] = made;
  EMULATOR_CHECK(freed(reinterpret_cast<uintptr_t>(address)));
  return made;
}

GraphMemory::~GraphMemory() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (live_) used -= size_;
  all.erase(reinterpret_cast<uintptr_t>(address_));
  arena_free(address_);
}

cudaError_t GraphMemory::allocate() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (live_) return cudaErrorInvalidValue;
  fill(address_, size_);
  EMULATOR_CHECK(allocated(reinterpret_cast<uintptr_t>(address_), size_));
  live_ = true;
  used += size_;
  most = std::max(most, used);
  return cudaSuccess;
}

cudaError_t GraphMemory::free() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (!live_) {
    EMULATOR_CHECK(freed_wrongly(address_));
    return cudaErrorInvalidValue;
  }
  EMULATOR_CHECK(freed(reinterpret_cast<uintptr_t>(address_)));
  live_ = false;
  used -= size_;
  return cudaSuccess;
}

std::shared_ptr<GraphMemory> find_graph_memory(const void* ptr) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  auto found = all.find(reinterpret_cast<uintptr_t>(ptr));
  return found == all.end() ? nullptr : found->second.lock();
}

size_t graph_memory_used() { return used; }
size_t graph_memory_most() { return most; }

size_t graph_memory_reserved() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  size_t sum = 0;
  for (const auto& entry : all)
    if (auto memory = entry.second.lock()) sum += memory->size();
  return sum;
}

void forget_most_graph_memory() { most = used; }

}  // namespace emulator

using emulator::report;

cudaError_t cudaDeviceGraphMemTrim(int device) {
  EMULATOR_RETURN_IF_STICKY();
  return report(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  EMULATOR_RETURN_IF_STICKY();
  if (device != 0) return report(cudaErrorInvalidDevice);
  if (value == nullptr) return report(cudaErrorInvalidValue);
  uint64_t* number = static_cast<uint64_t*>(value);
  switch (attribute) {
    case cudaGraphMemAttrUsedMemCurrent:
      *number = emulator::graph_memory_used();
      return cudaSuccess;
    case cudaGraphMemAttrUsedMemHigh:
      *number = emulator::graph_memory_most();
      return cudaSuccess;
    case cudaGraphMemAttrReservedMemCurrent:
    case cudaGraphMemAttrReservedMemHigh:
      *number = emulator::graph_memory_reserved();
      return cudaSuccess;
  }
  return report(cudaErrorInvalidValue);
}

// High marks can only be taken back.
cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value) {
  EMULATOR_RETURN_IF_STICKY();
  if (device != 0) return report(cudaErrorInvalidDevice);
  if (value == nullptr || *static_cast<uint64_t*>(value) != 0 ||
      (attribute != cudaGraphMemAttrUsedMemHigh && attribute != cudaGraphMemAttrReservedMemHigh))
    return report(cudaErrorInvalidValue);
  emulator::forget_most_graph_memory();
  return cudaSuccess;
}

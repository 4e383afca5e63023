/*!
 * \file managed.cc
 * \brief Managed memory: advice and prefetches, kept for those who ask.
 */
#include "emulator/managed.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "arena.h"
#include "counts.h"
#include "cuda_runtime.h"
#include "error.h"
#include "memory.h"
#include "stream.h"

namespace emulator {
namespace {

// What was said last of the memory from an address on, by a call with that very address.
struct Advice {
  size_t size;
  bool read_mostly = false;
  int preferred = cudaInvalidDeviceId, accessed_by = cudaInvalidDeviceId;
  int prefetched = cudaInvalidDeviceId;
};
std::mutex mutex;
std::map<uintptr_t, Advice> advices;

// Where `__managed__` variables lie, from begin to end. Programs tell it before main.
std::map<uintptr_t, uintptr_t>& variables() {
  static auto* all = new std::map<uintptr_t, uintptr_t>;
  return *all;
}

// A `__managed__` variable is a variable of the program.
bool is_variable(const void* ptr) {
  Dl_info info;
  return !in_arena(ptr) && dladdr(ptr, &info) != 0;
}

cudaError_t check_range(const void* ptr, size_t size) {
  if (ptr == nullptr || size == 0) return cudaErrorInvalidValue;
  return is_managed_memory(ptr, size) || is_variable(ptr) ? cudaSuccess : cudaErrorInvalidValue;
}

bool is_place(int device) { return device == 0 || device == cudaCpuDeviceId; }

// CUDA 13's way to name a place, as a number of CUDA 12.
int device_of(const cudaMemLocation& location) {
  switch (location.type) {
    case cudaMemLocationTypeDevice:
      return location.id;
    case cudaMemLocationTypeHost:
    case cudaMemLocationTypeHostNuma:
    case cudaMemLocationTypeHostNumaCurrent:
      return cudaCpuDeviceId;
    default:
      return cudaInvalidDeviceId;
  }
}

// The advice for an address: what was said of the memory that it lies in.
Advice* find_advice(const void* ptr) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  auto after = advices.upper_bound(address);
  if (after == advices.begin()) return nullptr;
  auto found = std::prev(after);
  return address - found->first < found->second.size ? &found->second : nullptr;
}

Advice* make_advice(const void* ptr, size_t size) {
  Advice& advice = advices[reinterpret_cast<uintptr_t>(ptr)];
  advice.size = std::max(advice.size, size);
  return &advice;
}

cudaError_t advise(Advice* advice, cudaMemoryAdvise what, int device) {
  switch (what) {
    case cudaMemAdviseSetReadMostly:
    case cudaMemAdviseUnsetReadMostly:
      advice->read_mostly = what == cudaMemAdviseSetReadMostly;
      return cudaSuccess;
    case cudaMemAdviseSetPreferredLocation:
      advice->preferred = device;
      return is_place(device) ? cudaSuccess : cudaErrorInvalidDevice;
    case cudaMemAdviseUnsetPreferredLocation:
      advice->preferred = cudaInvalidDeviceId;
      return cudaSuccess;
    case cudaMemAdviseSetAccessedBy:
      advice->accessed_by = device;
      return is_place(device) ? cudaSuccess : cudaErrorInvalidDevice;
    case cudaMemAdviseUnsetAccessedBy:
      advice->accessed_by = cudaInvalidDeviceId;
      return is_place(device) ? cudaSuccess : cudaErrorInvalidDevice;
  }
  return cudaErrorInvalidValue;
}

int value_of(const Advice& advice, cudaMemRangeAttribute attribute) {
  switch (attribute) {
    case cudaMemRangeAttributeReadMostly:
      return advice.read_mostly;
    case cudaMemRangeAttributePreferredLocation:
      return advice.preferred;
    case cudaMemRangeAttributeAccessedBy:
      return advice.accessed_by;
    case cudaMemRangeAttributeLastPrefetchLocation:
      return advice.prefetched;
  }
  return 0;
}

}  // namespace

void add_managed_variables(const char* begin, const char* end) {
  std::lock_guard<std::mutex> lock(mutex);
  const bool is_new =
      variables()
          .emplace(reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(end))
          .second;
  if (is_new) add_to_count(Count::kBytesToHost, end - begin);
}

bool is_managed_variable(const void* ptr, size_t size) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  std::lock_guard<std::mutex> lock(mutex);
  auto after = variables().upper_bound(address);
  if (after == variables().begin()) return false;
  const uintptr_t end = std::prev(after)->second;
  return address < end && size <= end - address;
}

void forget_advice(const void* ptr) {
  std::lock_guard<std::mutex> lock(mutex);
  advices.erase(reinterpret_cast<uintptr_t>(ptr));
}

}  // namespace emulator

using emulator::report;

cudaError_t cudaMemAdvise(const void* ptr, size_t size, cudaMemoryAdvise advice, int device) {
  EMULATOR_RETURN_IF_STICKY();
  cudaError_t error = emulator::check_range(ptr, size);
  if (error != cudaSuccess) return report(error);
  std::lock_guard<std::mutex> lock(emulator::mutex);
  return report(emulator::advise(emulator::make_advice(ptr, size), advice, device));
}

cudaError_t cudaMemAdvise(const void* ptr, size_t size, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
  EMULATOR_HOST_CALL();
  return cudaMemAdvise(ptr, size, advice, emulator::device_of(location));
}

cudaError_t cudaMemPrefetchAsync(const void* ptr, size_t size, int device, cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  cudaError_t error = emulator::check_range(ptr, size);
  if (error == cudaSuccess && !emulator::is_place(device)) error = cudaErrorInvalidDevice;
  if (error != cudaSuccess) return report(error);
  std::lock_guard<std::mutex> lock(emulator::mutex);
  emulator::make_advice(ptr, size)->prefetched = device;
  return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void* ptr, size_t size, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
  EMULATOR_HOST_CALL();
  if (flags != 0) return report(cudaErrorInvalidValue);
  return cudaMemPrefetchAsync(ptr, size, emulator::device_of(location), stream);
}

// One device can be asked for; the places of an array that are left over are none.
cudaError_t cudaMemRangeGetAttribute(void* value, size_t value_size,
                                     cudaMemRangeAttribute attribute, const void* ptr,
                                     size_t size) {
  EMULATOR_RETURN_IF_STICKY();
  if (value == nullptr || value_size < sizeof(int) || value_size % sizeof(int) != 0 ||
      attribute < cudaMemRangeAttributeReadMostly ||
      attribute > cudaMemRangeAttributeLastPrefetchLocation)
    return report(cudaErrorInvalidValue);
  cudaError_t error = emulator::check_range(ptr, size);
  if (error != cudaSuccess) return report(error);
  std::lock_guard<std::mutex> lock(emulator::mutex);
  const emulator::Advice* advice = emulator::find_advice(ptr);
  int* values = static_cast<int*>(value);
  std::fill_n(values, value_size / sizeof(int), cudaInvalidDeviceId);
  values[0] = emulator::value_of(advice ? *advice : emulator::Advice(), attribute);
  return cudaSuccess;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* ptr, size_t size, unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle)
    return report(cudaErrorInvalidValue);
  if (flags == cudaMemAttachSingle && stream == nullptr) return report(cudaErrorInvalidValue);
  return report(emulator::check_range(ptr, size == 0 ? 1 : size));
}

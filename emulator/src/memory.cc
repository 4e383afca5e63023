/*!
 * \file memory.cc
 * \brief cudaMalloc and its like.
 */
#include "memory.h"

#include <cstdlib>
#include <map>
#include <mutex>

#include "arena.h"
#include "checked.h"
#include "counts.h"
#include "error.h"
#include "fault.h"
#include "graph_memory.h"
#include "graph_nodes.h"
#include "kernel_heap.h"
#include "pools.h"
#include "protection.h"
#include "stream.h"
#include "variables.h"

namespace emulator {
namespace {

const size_t kPitchAlignment = 512;

// Memory of the host that the device may use: given out by the runtime, registered, or a symbol.
struct HostMemory {
  size_t size;
  cudaMemoryType type;
  bool owned;  // whether the runtime frees it
  unsigned flags;
};
std::mutex host_mutex;
std::map<uintptr_t, HostMemory> host_memory;  // by address

// The entry that an address lies in, or null. Under host_mutex.
const HostMemory* find_host_memory(const void* ptr) {
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  auto after = host_memory.upper_bound(address);
  if (after == host_memory.begin()) return nullptr;
  auto found = std::prev(after);
  return address - found->first < found->second.size ? &found->second : nullptr;
}

cudaError_t allocate_host(void** ptr, size_t size, cudaMemoryType type, unsigned flags) {
  if (ptr == nullptr) return cudaErrorInvalidValue;
  *ptr = nullptr;
  if (size == 0) return cudaSuccess;
  if (posix_memalign(ptr, 4096, size) != 0) return cudaErrorMemoryAllocation;
  std::lock_guard<std::mutex> lock(host_mutex);
  host_memory[reinterpret_cast<uintptr_t>(*ptr)] = {size, type, true, flags};
  EMULATOR_CHECK(host_memory_made(*ptr, size));
  return cudaSuccess;
}

cudaError_t free_host(void* ptr) {
  if (ptr == nullptr) return cudaSuccess;
  std::lock_guard<std::mutex> lock(host_mutex);
  auto found = host_memory.find(reinterpret_cast<uintptr_t>(ptr));
  if (found == host_memory.end() || !found->second.owned) return cudaErrorInvalidValue;
  host_memory.erase(found);
  forget_advice(ptr);
  EMULATOR_CHECK(host_memory_dropped(ptr));
  std::free(ptr);
  return cudaSuccess;
}

cudaError_t allocate(void** ptr, size_t size) {
  if (ptr == nullptr) return cudaErrorInvalidValue;
  install_fault_handler();
  return arena_allocate(ptr, size);
}

cudaError_t free_any(void* ptr) {
  if (auto of_graph = find_graph_memory(ptr)) return report(of_graph->free());
  forget_pool_memory(ptr);
  // Managed memory is freed by cudaFree too.
  cudaError_t error = in_arena(ptr) ? arena_free(ptr) : free_host(ptr);
  if (error != cudaSuccess) EMULATOR_CHECK(freed_wrongly(ptr));
  return report(error);
}

}  // namespace

cudaError_t allocate_in(cudaMemPool_t pool, void** ptr, size_t size, cudaStream_t stream) {
  if (ptr == nullptr) return cudaErrorInvalidValue;
  if (is_in_capture(stream)) {
    if (size == 0) return cudaErrorInvalidValue;
    install_fault_handler();
    auto memory = GraphMemory::make(size);
    if (memory == nullptr) return cudaErrorMemoryAllocation;
    *ptr = memory->address();
    return submit_while_capturing(stream, work_of_allocation(memory), nullptr);
  }
  if (is_any_capture()) {
    const cudaError_t refused = refuse_in_capture(stream);
    if (refused != cudaSuccess) return refused;
  }
  const cudaError_t error = allocate(ptr, size);
  if (error == cudaSuccess) note_pool_memory(pool, *ptr, size);
  return error;
}

bool is_shared_host_memory(const void* ptr) {
  std::lock_guard<std::mutex> lock(host_mutex);
  return find_host_memory(ptr) != nullptr;
}

bool find_given_out(uintptr_t address, size_t outside, uintptr_t* begin, size_t* size) {
  std::lock_guard<std::mutex> lock(host_mutex);
  auto after = host_memory.upper_bound(address);
  auto takes = [&](const std::pair<const uintptr_t, HostMemory>& entry, uintptr_t distance) {
    if (!entry.second.owned || distance > outside) return false;
    *begin = entry.first;
    *size = entry.second.size;
    return true;
  };
  if (after != host_memory.begin()) {
    const auto& before = *std::prev(after);
    const uintptr_t offset = address - before.first, end = before.second.size;
    if (takes(before, offset < end ? 0 : offset - end + 1)) return true;
  }
  return after != host_memory.end() && takes(*after, after->first - address);
}

bool is_managed_memory(const void* ptr, size_t size) {
  std::lock_guard<std::mutex> lock(host_mutex);
  const HostMemory* memory = find_host_memory(ptr);
  if (memory == nullptr || memory->type != cudaMemoryTypeManaged) return false;
  const uintptr_t last = reinterpret_cast<uintptr_t>(ptr) + size - 1;
  return size == 0 || find_host_memory(reinterpret_cast<const void*>(last)) == memory;
}

bool is_symbol(const void* ptr) {
  std::lock_guard<std::mutex> lock(host_mutex);
  const HostMemory* memory = find_host_memory(ptr);
  return memory != nullptr && memory->type == cudaMemoryTypeDevice;
}

void add_symbol(const void* symbol, size_t size) {
  std::lock_guard<std::mutex> lock(host_mutex);
  host_memory[reinterpret_cast<uintptr_t>(symbol)] = {size, cudaMemoryTypeDevice, false, 0};
}

}  // namespace emulator

using emulator::report;

cudaError_t cudaMalloc(void** ptr, size_t size) {
  EMULATOR_RETURN_IF_STICKY();
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_unsafe_call());
  return report(emulator::allocate(ptr, size));
}

cudaError_t cudaMallocPitch(void** ptr, size_t* pitch, size_t width, size_t height) {
  EMULATOR_RETURN_IF_STICKY();
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_unsafe_call());
  if (pitch == nullptr) return report(cudaErrorInvalidValue);
  *pitch = (width + emulator::kPitchAlignment - 1) / emulator::kPitchAlignment *
           emulator::kPitchAlignment;
  return report(emulator::allocate(ptr, *pitch * height));
}

// Depth slices, each of `height` rows.
cudaError_t cudaMalloc3D(cudaPitchedPtr* box, cudaExtent extent) {
  EMULATOR_HOST_CALL();
  if (box == nullptr) return report(cudaErrorInvalidValue);
  *box = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&box->ptr, &box->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t cudaMallocAsync(void** ptr, size_t size, cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return report(emulator::allocate_in(emulator::current_pool(), ptr, size, stream));
}

cudaError_t cudaFree(void* ptr) {
  EMULATOR_RETURN_IF_STICKY();
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_unsafe_call());
  EMULATOR_CHECK(host_waits_for_all());
  return emulator::free_any(ptr);
}

// What goes back to a pool costs the next call nothing: only what never does counts as allocated.
cudaError_t cudaFreeAsync(void* ptr, cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  if (emulator::is_in_capture(stream)) {
    auto memory = emulator::find_graph_memory(ptr);
    if (memory == nullptr) return report(cudaErrorInvalidValue);
    return report(
        emulator::submit_while_capturing(stream, emulator::work_of_free(memory), nullptr));
  }
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_in_capture(stream));
  const bool is_device = ptr != nullptr && emulator::in_arena(ptr);
  const cudaError_t error = emulator::free_any(ptr);
  if (error == cudaSuccess && is_device) emulator::add_to_count(emulator::Count::kAllocations, -1);
  return error;
}

// Plain memory: host code and kernels may use it alike.
cudaError_t cudaMallocManaged(void** ptr, size_t size, unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_unsafe_call());
  if (size == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
    return report(cudaErrorInvalidValue);
  emulator::add_to_count(emulator::Count::kBytesToHost, size);
  return report(emulator::allocate_host(ptr, size, cudaMemoryTypeManaged, flags));
}

cudaError_t cudaMallocHost(void** ptr, size_t size) {
  EMULATOR_HOST_CALL();
  return cudaHostAlloc(ptr, size, 0);
}

cudaError_t cudaHostAlloc(void** ptr, size_t size, unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_unsafe_call());
  if (flags > (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
    return report(cudaErrorInvalidValue);
  emulator::add_to_count(emulator::Count::kBytesToHost, size);
  return report(emulator::allocate_host(ptr, size, cudaMemoryTypeHost, flags));
}

cudaError_t cudaFreeHost(void* ptr) {
  EMULATOR_RETURN_IF_STICKY();
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_unsafe_call());
  EMULATOR_CHECK(host_waits_for_all());
  return report(emulator::free_host(ptr));
}

// Memory of the program's own that the device may use from now on.
cudaError_t cudaHostRegister(void* ptr, size_t size, unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_unsafe_call());
  if (ptr == nullptr || size == 0 || emulator::in_arena(ptr)) return report(cudaErrorInvalidValue);
  std::lock_guard<std::mutex> lock(emulator::host_mutex);
  if (emulator::find_host_memory(ptr) != nullptr)
    return report(cudaErrorHostMemoryAlreadyRegistered);
  emulator::host_memory[reinterpret_cast<uintptr_t>(ptr)] = {size, cudaMemoryTypeHost, false,
                                                             flags};
  emulator::share_variables(ptr, size);
  emulator::add_to_count(emulator::Count::kBytesToHost, size);
  EMULATOR_CHECK(host_memory_made(ptr, size));
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* ptr) {
  EMULATOR_RETURN_IF_STICKY();
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_unsafe_call());
  std::lock_guard<std::mutex> lock(emulator::host_mutex);
  auto found = emulator::host_memory.find(reinterpret_cast<uintptr_t>(ptr));
  if (found == emulator::host_memory.end() || found->second.owned ||
      found->second.type != cudaMemoryTypeHost)
    return report(cudaErrorHostMemoryNotRegistered);
  emulator::host_memory.erase(found);
  emulator::part_variables(ptr);
  EMULATOR_CHECK(host_memory_dropped(ptr));
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  if (device == nullptr || flags != 0 || !emulator::is_shared_host_memory(host))
    return report(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* ptr) {
  EMULATOR_RETURN_IF_STICKY();
  std::lock_guard<std::mutex> lock(emulator::host_mutex);
  const emulator::HostMemory* memory = emulator::find_host_memory(ptr);
  if (flags == nullptr || memory == nullptr || memory->type != cudaMemoryTypeHost)
    return report(cudaErrorInvalidValue);
  // All of it is mapped, whether that was asked for or not, as where addresses are unified.
  *flags = memory->flags | cudaHostAllocMapped;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* ptr) {
  EMULATOR_RETURN_IF_STICKY();
  if (attributes == nullptr) return report(cudaErrorInvalidValue);
  void* address = const_cast<void*>(ptr);
  *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, address};  // -2 is no device
  std::lock_guard<std::mutex> lock(emulator::host_mutex);
  const emulator::HostMemory* memory = emulator::find_host_memory(ptr);
  if (emulator::is_device_range(ptr, 1))
    *attributes = {cudaMemoryTypeDevice, 0, address, nullptr};
  else if (memory != nullptr)
    *attributes = {memory->type, 0, address,
                   memory->type == cudaMemoryTypeDevice ? nullptr : address};
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  EMULATOR_RETURN_IF_STICKY();
  if (free == nullptr || total == nullptr) return report(cudaErrorInvalidValue);
  *total = emulator::arena_capacity();
  *free = *total - emulator::arena_used();
  return cudaSuccess;
}

cudaError_t cudaThreadExit() { return cudaDeviceReset(); }

cudaError_t cudaDeviceReset() {
  EMULATOR_CHECK(host_waits_for_all());
  emulator::arena_free_all();
  emulator::forget_kernel_heap();
  emulator::clear_errors();
  return cudaSuccess;
}

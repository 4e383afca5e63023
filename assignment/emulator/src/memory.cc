/*!
 * \file memory.cc
 * \brief cudaMalloc and its like.
 */
#include "memory.h"

#include <cstdlib>
#include <map>
#include <mutex>

#include "arena.h"
#include "error.h"
#include "fault.h"
#include "protection.h"
#include "stream.h"

namespace emulator {
namespace {

const size_t kPitchAlignment = 512;

// Memory of the host that the runtime gave out: pinned or managed.
std::mutex host_mutex;
std::map<uintptr_t, size_t> host_memory;  // size by address

cudaError_t allocate_host(void** ptr, size_t size) {
  if (ptr == nullptr) return cudaErrorInvalidValue;
  *ptr = nullptr;
  if (size == 0) return cudaSuccess;
  if (posix_memalign(ptr, 4096, size) != 0) return cudaErrorMemoryAllocation;
  std::lock_guard<std::mutex> lock(host_mutex);
  host_memory[reinterpret_cast<uintptr_t>(*ptr)] = size;
  return cudaSuccess;
}

cudaError_t free_host(void* ptr) {
  if (ptr == nullptr) return cudaSuccess;
  std::lock_guard<std::mutex> lock(host_mutex);
  if (host_memory.erase(reinterpret_cast<uintptr_t>(ptr)) == 0) return cudaErrorInvalidValue;
  std::free(ptr);
  return cudaSuccess;
}

cudaError_t allocate(void** ptr, size_t size) {
  if (ptr == nullptr) return cudaErrorInvalidValue;
  install_fault_handler();
  return arena_allocate(ptr, size);
}

}  // namespace

bool is_shared_host_memory(const void* ptr) {
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  std::lock_guard<std::mutex> lock(host_mutex);
  auto after = host_memory.upper_bound(address);
  if (after == host_memory.begin()) return false;
  auto found = std::prev(after);
  return address - found->first < found->second;
}

}  // namespace emulator

using emulator::report;

cudaError_t cudaMalloc(void** ptr, size_t size) {
  EMULATOR_RETURN_IF_STICKY();
  return report(emulator::allocate(ptr, size));
}

cudaError_t cudaMallocPitch(void** ptr, size_t* pitch, size_t width, size_t height) {
  EMULATOR_RETURN_IF_STICKY();
  if (pitch == nullptr) return report(cudaErrorInvalidValue);
  *pitch = (width + emulator::kPitchAlignment - 1) / emulator::kPitchAlignment *
           emulator::kPitchAlignment;
  return report(emulator::allocate(ptr, *pitch * height));
}

cudaError_t cudaMallocAsync(void** ptr, size_t size, cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return report(emulator::allocate(ptr, size));
}

cudaError_t cudaFree(void* ptr) {
  EMULATOR_RETURN_IF_STICKY();
  // Managed memory is freed by cudaFree too.
  return report(emulator::in_arena(ptr) ? emulator::arena_free(ptr) : emulator::free_host(ptr));
}

cudaError_t cudaFreeAsync(void* ptr, cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return cudaFree(ptr);
}

// Plain memory: host code and kernels may use it alike.
cudaError_t cudaMallocManaged(void** ptr, size_t size, unsigned) {
  EMULATOR_RETURN_IF_STICKY();
  if (size == 0) return report(cudaErrorInvalidValue);
  return report(emulator::allocate_host(ptr, size));
}

cudaError_t cudaMallocHost(void** ptr, size_t size) { return cudaHostAlloc(ptr, size, 0); }

cudaError_t cudaHostAlloc(void** ptr, size_t size, unsigned) {
  EMULATOR_RETURN_IF_STICKY();
  return report(emulator::allocate_host(ptr, size));
}

cudaError_t cudaFreeHost(void* ptr) {
  EMULATOR_RETURN_IF_STICKY();
  return report(emulator::free_host(ptr));
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  EMULATOR_RETURN_IF_STICKY();
  if (free == nullptr || total == nullptr) return report(cudaErrorInvalidValue);
  *total = emulator::arena_capacity();
  *free = *total - emulator::arena_used();
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  emulator::arena_free_all();
  emulator::clear_errors();
  return cudaSuccess;
}

/*!
 * \file cpu_device_api.cc
 * \brief Memory of the CPU.
 */
#include "cpu_device_api.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace dlsys {
namespace runtime {

void* CPUDeviceAPI::AllocDataSpace(DLContext, size_t size, size_t alignment) {
  void* ptr = nullptr;
  // posix_memalign may return NULL for 0 bytes; an empty array still gets an address.
  if (posix_memalign(&ptr, alignment, size == 0 ? alignment : size) != 0)
    throw std::runtime_error("out of CPU memory: " + std::to_string(size) + " bytes asked for");
  return ptr;
}

void CPUDeviceAPI::FreeDataSpace(DLContext, void* ptr) { free(ptr); }

void CPUDeviceAPI::CopyDataFromTo(const void* from, void* to, size_t size, DLContext, DLContext,
                                  DLStreamHandle) {
  memmove(to, from, size);
}

void CPUDeviceAPI::Check(const char*) {}

void CPUDeviceAPI::Synchronize(const char*) {}

void CPUDeviceAPI::Reset() {}

}  // namespace runtime
}  // namespace dlsys

/*!
 * \file device.cc
 * \brief The one device there is: choosing it, asking about it, and settings that change nothing.
 */
#include "device.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "capture.h"
#include "error.h"
#include "pools.h"
#include "properties.h"
#include "protection.h"

namespace emulator {
namespace {

const char kPciBusId[] = "0000:01:00.0";

// Kept for those who ask, and heeded by none: sizes of stack, printf and malloc, and preferences.
std::atomic<size_t> limits[] = {{1024}, {1 << 20}, {8 << 20}};
std::atomic<cudaFuncCache> cache_config(cudaFuncCachePreferNone);

std::atomic<unsigned> device_flags(cudaDeviceScheduleAuto);

bool is_limit(cudaLimit limit) {
  return limit >= cudaLimitStackSize && limit <= cudaLimitMallocHeapSize;
}

}  // namespace
}  // namespace emulator

using emulator::report;

cudaError_t cudaDeviceSynchronize() {
  std::fflush(stdout);  // a GPU's printf appears now too
  EMULATOR_RETURN_IF_STICKY();
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_wait_for_device());
  EMULATOR_CHECK(host_waits_for_all());
  emulator::pools_release();
  emulator::host_goes_on();
  return cudaSuccess;
}

cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }

cudaError_t cudaSetDevice(int device) {
  EMULATOR_RETURN_IF_STICKY();
  return report(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }

cudaError_t cudaSetValidDevices(int* devices, int count) {
  EMULATOR_RETURN_IF_STICKY();
  if (devices == nullptr && count != 0) return report(cudaErrorInvalidValue);
  for (int i = 0; i < count; ++i)
    if (devices[i] != 0) return report(cudaErrorInvalidDevice);
  return cudaSuccess;
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

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* properties) {
  if (properties == nullptr) return report(cudaErrorInvalidValue);
  return cudaGetDevice(device);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  EMULATOR_RETURN_IF_STICKY();
  if (properties == nullptr) return report(cudaErrorInvalidValue);
  if (device != 0) return report(cudaErrorInvalidDevice);
  emulator::fill_properties(properties);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  EMULATOR_RETURN_IF_STICKY();
  if (device != 0) return report(cudaErrorInvalidDevice);
  if (value == nullptr || !emulator::find_attribute(attribute, value))
    return report(cudaErrorInvalidValue);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device) {
  EMULATOR_RETURN_IF_STICKY();
  if (id == nullptr || size < static_cast<int>(sizeof emulator::kPciBusId))
    return report(cudaErrorInvalidValue);
  if (device != 0) return report(cudaErrorInvalidDevice);
  std::memcpy(id, emulator::kPciBusId, sizeof emulator::kPciBusId);
  return cudaSuccess;
}

// The domain and the function may be left out.
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  EMULATOR_RETURN_IF_STICKY();
  if (device == nullptr || id == nullptr) return report(cudaErrorInvalidValue);
  const std::string wanted = id;
  if (wanted != emulator::kPciBusId && wanted != "01:00.0" && wanted != "0000:01:00")
    return report(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  EMULATOR_RETURN_IF_STICKY();
  if (can_access == nullptr) return report(cudaErrorInvalidValue);
  if (device != 0 || peer != 0) return report(cudaErrorInvalidDevice);
  *can_access = 0;  // a device is no peer of itself
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return report(cudaErrorInvalidDevice); }

cudaError_t cudaDeviceDisablePeerAccess(int) { return report(cudaErrorInvalidDevice); }

cudaError_t cudaDeviceGetP2PAttribute(int*, cudaDeviceP2PAttr, int, int) {
  return report(cudaErrorInvalidDevice);
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return report(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  EMULATOR_RETURN_IF_STICKY();
  emulator::cache_config = config;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  EMULATOR_RETURN_IF_STICKY();
  if (config == nullptr) return report(cudaErrorInvalidValue);
  *config = emulator::cache_config;
  return cudaSuccess;
}

// A GPU of today has banks of four bytes, whatever it is told.
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  EMULATOR_RETURN_IF_STICKY();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  EMULATOR_RETURN_IF_STICKY();
  if (config == nullptr) return report(cudaErrorInvalidValue);
  *config = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  if ((flags & ~cudaDeviceMask) != 0) return report(cudaErrorInvalidValue);
  emulator::device_flags = flags;
  return cudaSuccess;
}

// Memory of the host is mapped whether that is asked for or not.
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  EMULATOR_RETURN_IF_STICKY();
  if (flags == nullptr) return report(cudaErrorInvalidValue);
  *flags = emulator::device_flags | cudaDeviceMapHost;
  return cudaSuccess;
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  EMULATOR_RETURN_IF_STICKY();
  return cudaSuccess;
}

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

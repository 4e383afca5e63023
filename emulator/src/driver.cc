/*!
 * \file driver.cc
 * \brief The driver's side of the device: errors, devices, contexts, streams and events.
 */
#include "driver.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "properties.h"

struct CUctx_st {
  unsigned flags;
};

namespace emulator {
namespace {

const unsigned kApiVersion = 3020;  // of contexts, since CUDA 3.2

std::atomic<bool> initialized(false);

std::mutex mutex;
std::set<CUcontext> contexts;  // those that cuCtxCreate made
CUctx_st primary = {0};
int primary_uses = 0;
thread_local std::vector<CUcontext> current;  // the last one counts

bool is_context(CUcontext context) {
  std::lock_guard<std::mutex> lock(mutex);
  return (context == &primary && primary_uses > 0) || contexts.count(context) > 0;
}

// The thread's context; the primary one where only the runtime was used.
CUcontext current_context() {
  while (!current.empty() && !is_context(current.back())) current.pop_back();
  if (!current.empty()) return current.back();
  return runtime_was_called() ? &primary : nullptr;
}

CUresult check_device(const void* result, CUdevice device) {
  if (!is_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

const char* name_of(CUresult error) {
  switch (error) {
#define EMULATOR_ERROR(name, number) \
  case name:                         \
    return #name;
    EMULATOR_DRIVER_ERRORS(EMULATOR_ERROR)
#undef EMULATOR_ERROR
  }
  return nullptr;
}

void copy_text(char* to, int size, const char* text) {
  std::snprintf(to, static_cast<size_t>(size), "%s", text);
}

}  // namespace

bool is_driver_started() { return initialized || runtime_was_called(); }

CUresult check_context() {
  if (!is_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
  return current_context() != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// Most have the same number; what only the runtime tells apart is a wrong value to the driver.
CUresult driver_error(cudaError_t error) {
  const CUresult same = static_cast<CUresult>(error);
  return name_of(same) != nullptr ? same : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace emulator

using emulator::check_device;

CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  emulator::initialized = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = emulator::name_of(error);
  return *name != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The texts are those of the runtime's error of the same number.
CUresult cuGetErrorString(CUresult error, const char** text) {
  CUresult result = cuGetErrorName(error, text);
  if (result == CUDA_SUCCESS) *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return result;
}

CUresult cuDeviceGet(CUdevice* device, int number) {
  CUresult error = check_device(device, number);
  if (error == CUDA_SUCCESS) *device = number;
  return error;
}

CUresult cuDeviceGetCount(int* count) {
  CUresult error = check_device(count, 0);
  if (error == CUDA_SUCCESS) *count = 1;
  return error;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  CUresult error = check_device(name, device);
  if (error != CUDA_SUCCESS) return error;
  if (size <= 0) return CUDA_ERROR_INVALID_VALUE;
  cudaDeviceProp properties;
  emulator::fill_properties(&properties);
  emulator::copy_text(name, size, properties.name);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  CUresult error = check_device(uuid, device);
  if (error != CUDA_SUCCESS) return error;
  cudaDeviceProp properties;
  emulator::fill_properties(&properties);
  *uuid = properties.uuid;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  CUresult error = check_device(bytes, device);
  if (error != CUDA_SUCCESS) return error;
  cudaDeviceProp properties;
  emulator::fill_properties(&properties);
  *bytes = properties.totalGlobalMem;
  return CUDA_SUCCESS;
}

// The numbers of attributes are the runtime's.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  CUresult error = check_device(value, device);
  if (error != CUDA_SUCCESS) return error;
  return emulator::find_attribute(attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  CUresult error = check_device(properties, device);
  if (error != CUDA_SUCCESS) return error;
  cudaDeviceProp p;
  emulator::fill_properties(&p);
  *properties = {p.maxThreadsPerBlock,
                 {p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2]},
                 {p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2]},
                 static_cast<int>(p.sharedMemPerBlock),
                 static_cast<int>(p.totalConstMem),
                 p.warpSize,
                 static_cast<int>(p.memPitch),
                 p.regsPerBlock,
                 p.clockRate,
                 static_cast<int>(p.textureAlignment)};
  return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  CUresult error = check_device(major, device);
  if (error == CUDA_SUCCESS) error = check_device(minor, device);
  if (error != CUDA_SUCCESS) return error;
  *major = emulator::kMajor;
  *minor = emulator::kMinor;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  EMULATOR_HOST_CALL();
  CUresult error = check_device(id, device);
  if (error != CUDA_SUCCESS) return error;
  emulator::Quiet quiet;
  return emulator::driver_error(cudaDeviceGetPCIBusId(id, size, device));
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  EMULATOR_HOST_CALL();
  CUresult error = check_device(device, 0);
  if (error != CUDA_SUCCESS) return error;
  emulator::Quiet quiet;
  return emulator::driver_error(cudaDeviceGetByPCIBusId(device, id));
}

CUresult cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer) {
  CUresult error = check_device(can_access, device);
  if (error == CUDA_SUCCESS) error = check_device(can_access, peer);
  if (error == CUDA_SUCCESS) *can_access = 0;
  return error;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  CUresult error = check_device(context, device);
  if (error != CUDA_SUCCESS) return error;
  std::lock_guard<std::mutex> lock(emulator::mutex);
  ++emulator::primary_uses;
  *context = &emulator::primary;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  CUresult error = check_device(&device, device);
  if (error != CUDA_SUCCESS) return error;
  std::lock_guard<std::mutex> lock(emulator::mutex);
  if (emulator::primary_uses == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --emulator::primary_uses;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  CUresult error = check_device(&device, device);
  if (error != CUDA_SUCCESS) return error;
  return emulator::driver_error(cudaDeviceReset());
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  CUresult error = check_device(&device, device);
  if (error != CUDA_SUCCESS) return error;
  if ((flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  emulator::primary.flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  CUresult error = check_device(flags, device);
  if (error == CUDA_SUCCESS) error = check_device(active, device);
  if (error != CUDA_SUCCESS) return error;
  std::lock_guard<std::mutex> lock(emulator::mutex);
  *flags = emulator::primary.flags;
  *active = emulator::primary_uses > 0 || emulator::runtime_was_called();
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  CUresult error = check_device(context, device);
  if (error != CUDA_SUCCESS) return error;
  if ((flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> lock(emulator::mutex);
  *context = new CUctx_st{flags};
  emulator::contexts.insert(*context);
  emulator::current.push_back(*context);
  return CUDA_SUCCESS;
}

// The memory is kept, so that no new context can be taken for one that was destroyed.
CUresult cuCtxDestroy(CUcontext context) {
  if (!emulator::is_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
  std::lock_guard<std::mutex> lock(emulator::mutex);
  return emulator::contexts.erase(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  CUresult error = check_device(context, 0);
  if (error == CUDA_SUCCESS) *context = emulator::current_context();
  return error;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  if (!emulator::is_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (context != nullptr && context != &emulator::primary && !emulator::is_context(context))
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!emulator::current.empty()) emulator::current.pop_back();
  if (context != nullptr) emulator::current.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  if (!emulator::is_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!emulator::is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  emulator::current.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  if (!emulator::is_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (emulator::current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = emulator::current.back();
  emulator::current.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  CUresult error = emulator::check_context();
  if (error != CUDA_SUCCESS) return error;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned* flags) {
  CUresult error = emulator::check_context();
  if (error != CUDA_SUCCESS) return error;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = emulator::current_context()->flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext, unsigned* version) {
  CUresult error = emulator::check_context();
  if (error != CUDA_SUCCESS) return error;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = emulator::kApiVersion;
  return CUDA_SUCCESS;
}

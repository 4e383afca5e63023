/*!
 * \file c_runtime_api.cc
 * \brief Arrays, copies and errors behind the C interface.
 */
#include "c_runtime_api.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "cpu_device_api.h"
#include "cuda_check.h"
#include "cuda_device_api.h"
#include "runtime_base.h"

// cuda_device_api.cc
int64_t dlsys_raw_allocations();
int64_t dlsys_bytes_to_host();
int64_t dlsys_live_handles();

namespace dlsys {
namespace runtime {
namespace {

const size_t kAlignment = 8;
thread_local std::string last_error;
std::atomic<int64_t> device_arrays(0);

size_t ByteSize(const DLArray& arr) { return sizeof(float) * static_cast<size_t>(size_of(&arr)); }

void CheckShape(const index_t* shape, int ndim) {
  size_t size = sizeof(float);
  if (ndim < 0) throw std::runtime_error("an array can't have " + std::to_string(ndim) + " axes");
  for (int i = 0; i < ndim; ++i) {
    if (shape[i] < 0)
      throw std::runtime_error("axis " + std::to_string(i) + " has length " +
                               std::to_string(shape[i]));
    if (shape[i] > 0 && size > static_cast<size_t>(INT64_MAX) / static_cast<size_t>(shape[i]))
      throw std::runtime_error("the array has more than 2^63 bytes");
    size *= static_cast<size_t>(shape[i]);
  }
}

std::atomic<int64_t> device_resets(0);

/*! \brief An array that DLArrayAlloc has given. */
struct OwnedArray : DLArray {
  int64_t resets;  // of the device before
};

/*! \brief Frees the shape and the struct; the data is freed by FreeArray. */
struct ArrayDeleter {
  void operator()(OwnedArray* arr) const {
    delete[] arr->shape;
    delete arr;
  }
};

}  // namespace

DeviceAPI* GetDeviceAPI(DLDeviceType type) {
  static CPUDeviceAPI cpu;
  static CUDADeviceAPI cuda;
  if (type == kCPU) return &cpu;
  if (type == kGPU) return &cuda;
  throw std::runtime_error("device type " + std::to_string(static_cast<int>(type)) +
                           " is neither 1 (cpu) nor 2 (gpu)");
}

}  // namespace runtime
}  // namespace dlsys

using namespace dlsys::runtime;

const char* DLGetLastError() { return last_error.c_str(); }

int DLSetLastError(const char* message, int code) {
  last_error = message;
  return code;
}

int DLDeviceCheck(const char* what) {
  API_BEGIN();
  GetDeviceAPI(kGPU)->Check(what);
  API_END();
}

int DLDeviceSynchronize(const char* what) {
  API_BEGIN();
  GetDeviceAPI(kGPU)->Synchronize(what);
  API_END();
}

int DLDeviceReset() {
  API_BEGIN();
  GetDeviceAPI(kGPU)->Reset();
  ++device_resets;
  API_END();
}

int DLArrayAlloc(const index_t* shape, index_t ndim_wide, DLContext ctx, DLArrayHandle* out) {
  API_BEGIN();
  *out = nullptr;
  // Python passes a C int: the upper half of the register is not part of the argument.
  const int ndim = static_cast<int>(ndim_wide);
  CheckShape(shape, ndim);
  std::unique_ptr<OwnedArray, ArrayDeleter> arr(new OwnedArray());
  arr->resets = device_resets;
  arr->ctx = ctx;
  arr->ndim = ndim;
  arr->shape = new int64_t[ndim];
  std::copy(shape, shape + ndim, arr->shape);
  arr->data = GetDeviceAPI(ctx.device_type)->AllocDataSpace(ctx, ByteSize(*arr), kAlignment);
  if (ctx.device_type == kGPU) ++device_arrays;
  *out = arr.release();
  API_END();
}

int DLArrayFree(DLArrayHandle handle) {
  API_BEGIN();
  if (handle != nullptr) {
    std::unique_ptr<OwnedArray, ArrayDeleter> arr(static_cast<OwnedArray*>(handle));
    const bool is_gone = arr->ctx.device_type == kGPU && arr->resets != device_resets;
    if (is_gone) return 0;
    GetDeviceAPI(arr->ctx.device_type)->FreeDataSpace(arr->ctx, arr->data);
  }
  API_END();
}

int DLArrayCopyFromTo(DLArrayHandle from, DLArrayHandle to, DLStreamHandle stream) {
  API_BEGIN();
  const size_t size = ByteSize(*from);
  if (size != ByteSize(*to))
    throw std::runtime_error(
        ("copy: sizes differ: from " + shape_of(from) + " to " + shape_of(to)).c_str());
  const bool on_gpu = from->ctx.device_type == kGPU || to->ctx.device_type == kGPU;
  if (size > 0)
    GetDeviceAPI(on_gpu ? kGPU : kCPU)
        ->CopyDataFromTo(from->data, to->data, size, from->ctx, to->ctx, stream);
  API_END();
}

int DLGetAllocationCounts(int64_t* arrays, int64_t* raw) {
  *arrays = device_arrays;
  *raw = dlsys_raw_allocations();
  return 0;
}

int DLGetDeviceUse(int64_t* to_host, int64_t* handles) {
  *to_host = dlsys_bytes_to_host();
  *handles = dlsys_live_handles();
  return 0;
}

/*!
 * \file driver_calls.cc
 * \brief The functions of the driver that are the runtime's by other names.
 */
#include <algorithm>
#include <vector>

#include "arena.h"
#include "capture.h"
#include "copy.h"
#include "driver.h"
#include "stream.h"

namespace emulator {
namespace {

void* host_of(const CUDA_MEMCPY2D& copy, bool to) {
  const CUmemorytype type = to ? copy.dstMemoryType : copy.srcMemoryType;
  if (type == CU_MEMORYTYPE_HOST) return to ? copy.dstHost : const_cast<void*>(copy.srcHost);
  return address_of(to ? copy.dstDevice : copy.srcDevice);
}

cudaError_t copy_rectangle(const CUDA_MEMCPY2D& c, CUstream stream, bool waits) {
  if (c.srcMemoryType == CU_MEMORYTYPE_ARRAY || c.dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return cudaErrorNotSupported;
  // A pitch of 0 stands for rows that follow each other.
  const size_t to_pitch = c.dstPitch ? c.dstPitch : c.WidthInBytes + c.dstXInBytes;
  const size_t from_pitch = c.srcPitch ? c.srcPitch : c.WidthInBytes + c.srcXInBytes;
  char* to = static_cast<char*>(host_of(c, true)) + c.dstY * to_pitch + c.dstXInBytes;
  char* from = static_cast<char*>(host_of(c, false)) + c.srcY * from_pitch + c.srcXInBytes;
  if (waits)
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, c.WidthInBytes, c.Height,
                        cudaMemcpyDefault);
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, c.WidthInBytes, c.Height,
                           cudaMemcpyDefault, stream);
}

template <typename T>
cudaError_t fill(CUdeviceptr ptr, T value, size_t count, CUstream stream) {
  if (ptr % sizeof(T) != 0) return cudaErrorInvalidValue;
  if (!is_device_range(address_of(ptr), count * sizeof(T)) && in_arena(address_of(ptr)))
    return cudaErrorInvalidValue;
  if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
  if (count == 0) return cudaSuccess;
  const cudaMemsetParams fill{address_of(ptr), 0, value, sizeof(T), count, 1};
  const cudaError_t error = check_fill(fill);
  if (error != cudaSuccess) return error;
  return submit(stream, cudaGraphNodeTypeMemset, "memset",
                [fill](cudaStream_t now) { return fill_now(fill, now); });
}

CUresult get_attribute(const cudaPointerAttributes& a, CUpointer_attribute attribute, void* value) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(value) =
          a.type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<void**>(value) = a.devicePointer;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *static_cast<void**>(value) = a.hostPointer;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(value) = a.type == cudaMemoryTypeManaged;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = a.device;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

void** as_pointer(CUdeviceptr* ptr) { return reinterpret_cast<void**>(ptr); }

}  // namespace
}  // namespace emulator

using emulator::address_of;
using emulator::as_pointer;

CUresult cuCtxSynchronize() { EMULATOR_DRIVER_CALL(cudaDeviceSynchronize()); }
CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  EMULATOR_DRIVER_CALL(cudaDeviceGetLimit(value, static_cast<cudaLimit>(limit)));
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  EMULATOR_DRIVER_CALL(cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value));
}
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  EMULATOR_DRIVER_CALL(cudaDeviceGetCacheConfig(reinterpret_cast<cudaFuncCache*>(config)));
}
CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  EMULATOR_DRIVER_CALL(cudaDeviceSetCacheConfig(static_cast<cudaFuncCache>(config)));
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  EMULATOR_DRIVER_CALL(cudaDeviceGetStreamPriorityRange(least, greatest));
}
CUresult cuCtxEnablePeerAccess(CUcontext, unsigned) { return CUDA_ERROR_INVALID_CONTEXT; }
CUresult cuCtxDisablePeerAccess(CUcontext) { return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED; }

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  EMULATOR_DRIVER_CALL(cudaMemGetInfo(free, total));
}
CUresult cuMemAlloc(CUdeviceptr* ptr, size_t size) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  EMULATOR_DRIVER_CALL(cudaMalloc(as_pointer(ptr), size));
}
CUresult cuMemAllocPitch(CUdeviceptr* ptr, size_t* pitch, size_t width, size_t height,
                         unsigned element_size) {
  if (element_size != 4 && element_size != 8 && element_size != 16) return CUDA_ERROR_INVALID_VALUE;
  EMULATOR_DRIVER_CALL(cudaMallocPitch(as_pointer(ptr), pitch, width, height));
}
CUresult cuMemAllocManaged(CUdeviceptr* ptr, size_t size, unsigned flags) {
  EMULATOR_DRIVER_CALL(cudaMallocManaged(as_pointer(ptr), size, flags));
}
CUresult cuMemAllocAsync(CUdeviceptr* ptr, size_t size, CUstream stream) {
  EMULATOR_DRIVER_CALL(cudaMallocAsync(as_pointer(ptr), size, stream));
}
CUresult cuMemFree(CUdeviceptr ptr) { EMULATOR_DRIVER_CALL(cudaFree(address_of(ptr))); }
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream) {
  EMULATOR_DRIVER_CALL(cudaFreeAsync(address_of(ptr), stream));
}
CUresult cuMemAllocHost(void** ptr, size_t size) {
  EMULATOR_DRIVER_CALL(cudaMallocHost(ptr, size));
}
CUresult cuMemHostAlloc(void** ptr, size_t size, unsigned flags) {
  EMULATOR_DRIVER_CALL(cudaHostAlloc(ptr, size, flags));
}
CUresult cuMemFreeHost(void* ptr) { EMULATOR_DRIVER_CALL(cudaFreeHost(ptr)); }
CUresult cuMemHostRegister(void* ptr, size_t size, unsigned flags) {
  EMULATOR_DRIVER_CALL(cudaHostRegister(ptr, size, flags));
}
CUresult cuMemHostUnregister(void* ptr) { EMULATOR_DRIVER_CALL(cudaHostUnregister(ptr)); }
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned flags) {
  EMULATOR_DRIVER_CALL(cudaHostGetDevicePointer(as_pointer(device), host, flags));
}
CUresult cuMemHostGetFlags(unsigned* flags, void* ptr) {
  EMULATOR_DRIVER_CALL(cudaHostGetFlags(flags, ptr));
}
CUresult cuMemAdvise(CUdeviceptr ptr, size_t size, CUmem_advise advice, CUdevice device) {
  EMULATOR_DRIVER_CALL(
      cudaMemAdvise(address_of(ptr), size, static_cast<cudaMemoryAdvise>(advice), device));
}
CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t size, CUdevice device, CUstream stream) {
  EMULATOR_DRIVER_CALL(cudaMemPrefetchAsync(address_of(ptr), size, device, stream));
}

CUresult cuMemGetAddressRange(CUdeviceptr* start, size_t* size, CUdeviceptr ptr) {
  if (emulator::check_context() != CUDA_SUCCESS) return emulator::check_context();
  emulator::Place place;
  if (!emulator::is_device_range(address_of(ptr), 1) || !emulator::try_locate(ptr, &place))
    return CUDA_ERROR_NOT_FOUND;
  if (start != nullptr) *start = place.start;
  if (size != nullptr) *size = place.size;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  EMULATOR_HOST_CALL();
  if (emulator::check_context() != CUDA_SUCCESS) return emulator::check_context();
  emulator::Quiet quiet;
  cudaPointerAttributes attributes;
  cudaError_t error = cudaPointerGetAttributes(&attributes, address_of(ptr));
  if (error != cudaSuccess) return emulator::driver_error(error);
  if (value == nullptr || attributes.type == cudaMemoryTypeUnregistered)
    return CUDA_ERROR_INVALID_VALUE;
  return emulator::get_attribute(attributes, attribute, value);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  EMULATOR_DRIVER_CALL(cudaMemcpy(address_of(to), address_of(from), size, cudaMemcpyDefault));
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  EMULATOR_DRIVER_CALL(
      cudaMemcpyAsync(address_of(to), address_of(from), size, cudaMemcpyDefault, stream));
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t size) {
  EMULATOR_DRIVER_CALL(cudaMemcpy(address_of(to), from, size, cudaMemcpyHostToDevice));
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  EMULATOR_DRIVER_CALL(cudaMemcpyAsync(address_of(to), from, size, cudaMemcpyHostToDevice, stream));
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t size) {
  EMULATOR_DRIVER_CALL(cudaMemcpy(to, address_of(from), size, cudaMemcpyDeviceToHost));
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  EMULATOR_DRIVER_CALL(cudaMemcpyAsync(to, address_of(from), size, cudaMemcpyDeviceToHost, stream));
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size) {
  EMULATOR_DRIVER_CALL(
      cudaMemcpy(address_of(to), address_of(from), size, cudaMemcpyDeviceToDevice));
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  EMULATOR_DRIVER_CALL(
      cudaMemcpyAsync(address_of(to), address_of(from), size, cudaMemcpyDeviceToDevice, stream));
}
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  EMULATOR_DRIVER_CALL(emulator::copy_rectangle(*copy, nullptr, true));
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  EMULATOR_DRIVER_CALL(emulator::copy_rectangle(*copy, stream, false));
}
CUresult cuMemsetD8Async(CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream) {
  EMULATOR_DRIVER_CALL(cudaMemsetAsync(address_of(ptr), value, count, stream));
}
CUresult cuMemsetD16Async(CUdeviceptr ptr, unsigned short value, size_t count, CUstream stream) {
  EMULATOR_DRIVER_CALL(emulator::fill(ptr, value, count, stream));
}
CUresult cuMemsetD32Async(CUdeviceptr ptr, unsigned value, size_t count, CUstream stream) {
  EMULATOR_DRIVER_CALL(emulator::fill(ptr, value, count, stream));
}
CUresult cuMemsetD8(CUdeviceptr ptr, unsigned char value, size_t count) {
  return cuMemsetD8Async(ptr, value, count, nullptr);
}
CUresult cuMemsetD16(CUdeviceptr ptr, unsigned short value, size_t count) {
  return cuMemsetD16Async(ptr, value, count, nullptr);
}
CUresult cuMemsetD32(CUdeviceptr ptr, unsigned value, size_t count) {
  return cuMemsetD32Async(ptr, value, count, nullptr);
}

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  EMULATOR_DRIVER_CALL(cudaStreamCreateWithFlags(stream, flags));
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  EMULATOR_DRIVER_CALL(cudaStreamCreateWithPriority(stream, flags, priority));
}
CUresult cuStreamDestroy(CUstream stream) { EMULATOR_DRIVER_CALL(cudaStreamDestroy(stream)); }
CUresult cuStreamSynchronize(CUstream stream) {
  EMULATOR_DRIVER_CALL(cudaStreamSynchronize(stream));
}
CUresult cuStreamQuery(CUstream stream) { EMULATOR_DRIVER_CALL(cudaStreamQuery(stream)); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  EMULATOR_DRIVER_CALL(cudaStreamWaitEvent(stream, event, flags));
}
CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  EMULATOR_DRIVER_CALL(cudaStreamGetFlags(stream, flags));
}
CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  EMULATOR_DRIVER_CALL(cudaStreamGetPriority(stream, priority));
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  EMULATOR_DRIVER_CALL(cudaLaunchHostFunc(stream, function, data));
}
CUresult cuEventCreate(CUevent* event, unsigned flags) {
  EMULATOR_DRIVER_CALL(cudaEventCreateWithFlags(event, flags));
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  EMULATOR_DRIVER_CALL(cudaEventRecord(event, stream));
}
CUresult cuEventSynchronize(CUevent event) { EMULATOR_DRIVER_CALL(cudaEventSynchronize(event)); }
CUresult cuEventQuery(CUevent event) { EMULATOR_DRIVER_CALL(cudaEventQuery(event)); }
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  EMULATOR_DRIVER_CALL(cudaEventElapsedTime(milliseconds, start, end));
}
CUresult cuEventDestroy(CUevent event) { EMULATOR_DRIVER_CALL(cudaEventDestroy(event)); }

// Nobody profiles.
CUresult cuProfilerStart() { return emulator::check_context(); }
CUresult cuProfilerStop() { return emulator::check_context(); }

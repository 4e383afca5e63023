/*!
 * \file cuda_device_api.cc
 * \brief Memory of CUDA devices, real or emulated.
 */
#include "cuda_device_api.h"

#include <cuda_runtime.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace dlsys {
namespace runtime {
namespace {

void ThrowOnError(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // the error is reported here, once
  throw std::runtime_error(what + ": " + cudaGetErrorString(error) + " (CUDA error " +
                           std::to_string(static_cast<int>(error)) + ")");
}

cudaMemcpyKind CopyKind(DLContext from, DLContext to) {
  if (from.device_type == kGPU && to.device_type == kGPU) return cudaMemcpyDeviceToDevice;
  return from.device_type == kGPU ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
}

}  // namespace

void* CUDADeviceAPI::AllocDataSpace(DLContext ctx, size_t size, size_t) {
  ThrowOnError(cudaSetDevice(ctx.device_id), "cudaSetDevice");
  void* ptr = nullptr;
  ThrowOnError(cudaMalloc(&ptr, size), "cudaMalloc of " + std::to_string(size) + " bytes");
  return ptr;
}

void CUDADeviceAPI::FreeDataSpace(DLContext ctx, void* ptr) {
  ThrowOnError(cudaSetDevice(ctx.device_id), "cudaSetDevice");
  ThrowOnError(cudaFree(ptr), "cudaFree");
}

void CUDADeviceAPI::CopyDataFromTo(const void* from, void* to, size_t size, DLContext ctx_from,
                                   DLContext ctx_to, DLStreamHandle stream_handle) {
  cudaStream_t stream = static_cast<cudaStream_t>(stream_handle);
  DLContext device = ctx_from.device_type == kGPU ? ctx_from : ctx_to;
  ThrowOnError(cudaSetDevice(device.device_id), "cudaSetDevice");
  const std::string what = "copy of " + std::to_string(size) + " bytes";
  cudaMemcpyKind kind = CopyKind(ctx_from, ctx_to);
  if (kind == cudaMemcpyDeviceToDevice && ctx_from.device_id != ctx_to.device_id) {
    ThrowOnError(cudaMemcpyPeerAsync(to, ctx_to.device_id, from, ctx_from.device_id, size, stream),
                 what);
  } else if (stream != nullptr) {
    ThrowOnError(cudaMemcpyAsync(to, from, size, kind, stream), what);
  } else {
    ThrowOnError(cudaMemcpy(to, from, size, kind), what);
  }
}

void CUDADeviceAPI::Check(const char* what) { ThrowOnError(cudaGetLastError(), what); }

void CUDADeviceAPI::Synchronize(const char* what) {
  ThrowOnError(cudaDeviceSynchronize(), what);
  Check(what);
}

}  // namespace runtime
}  // namespace dlsys

#ifdef __CUDA_EMULATOR__

int64_t dlsys_raw_allocations() { return emulator_cuda_malloc_count(); }

#else

// The linker sends every call of cudaMalloc in this library here (--wrap=cudaMalloc), also
// those of gpu_op.cu, so that growing memory can be seen from outside.
static std::atomic<int64_t> raw_allocations(0);

int64_t dlsys_raw_allocations() { return raw_allocations; }

extern "C" cudaError_t __real_cudaMalloc(void** ptr, size_t size);
extern "C" cudaError_t __wrap_cudaMalloc(void** ptr, size_t size) {
  cudaError_t error = __real_cudaMalloc(ptr, size);
  if (error == cudaSuccess) ++raw_allocations;
  return error;
}

#endif

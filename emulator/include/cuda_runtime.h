/*!
 * \file cuda_runtime.h
 * \brief CUDA for the emulated GPU: the language, the runtime, and its C++ overloads.
 */
#ifndef CUDA_RUNTIME_H_
#define CUDA_RUNTIME_H_

// What helper headers look for: the guards of NVIDIA's cuda_runtime.h and of what that includes.
#define __CUDA_RUNTIME_H__
#define __CHANNEL_DESCRIPTOR_H__
#define __COMMON_FUNCTIONS_H__
#define __DEVICE_FUNCTIONS_H__
#define __DEVICE_LAUNCH_PARAMETERS_H__
#define __DRIVER_FUNCTIONS_H__
#define __HOST_CONFIG_H__
#define __HOST_DEFINES_H__
#define __LIBRARY_TYPES_H__
#define __MATH_FUNCTIONS_H__
#define __VECTOR_FUNCTIONS_H__
#define __VECTOR_TYPES_H__

#include "cuda_emulator.h"
#include "cuda_runtime_api.h"
#include "emulator/boxes.h"
#include "emulator/graph_overloads.h"
#include "emulator/launch_kernel.h"
#include "emulator/occupancy.h"
#include "emulator/site.h"

// Overloads that save casts to void **.

template <typename T>
cudaError_t cudaMalloc(T** ptr, size_t size, EMULATOR_CALL_SITE) {
  emulator::CallSite site(file, line);
  return cudaMalloc(reinterpret_cast<void**>(ptr), size);
}
template <typename T>
cudaError_t cudaMallocAsync(T** ptr, size_t size, cudaStream_t stream, EMULATOR_CALL_SITE) {
  emulator::CallSite site(file, line);
  return cudaMallocAsync(reinterpret_cast<void**>(ptr), size, stream);
}
template <typename T>
cudaError_t cudaMallocPitch(T** ptr, size_t* pitch, size_t width, size_t height,
                            EMULATOR_CALL_SITE) {
  emulator::CallSite site(file, line);
  return cudaMallocPitch(reinterpret_cast<void**>(ptr), pitch, width, height);
}
template <typename T>
cudaError_t cudaMallocManaged(T** ptr, size_t size, unsigned flags = cudaMemAttachGlobal) {
  return cudaMallocManaged(reinterpret_cast<void**>(ptr), size, flags);
}
template <typename T>
cudaError_t cudaMallocHost(T** ptr, size_t size, unsigned flags = cudaHostAllocDefault) {
  return cudaHostAlloc(reinterpret_cast<void**>(ptr), size, flags);
}
template <typename T>
cudaError_t cudaHostAlloc(T** ptr, size_t size, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(ptr), size, flags);
}
template <typename T>
cudaError_t cudaMallocAsync(T** ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return cudaMallocFromPoolAsync(reinterpret_cast<void**>(ptr), size, pool, stream);
}
template <typename T>
cudaError_t cudaMallocFromPoolAsync(T** ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return cudaMallocFromPoolAsync(reinterpret_cast<void**>(ptr), size, pool, stream);
}
template <typename T>
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, T* ptr, size_t size = 0,
                                     unsigned flags = cudaMemAttachSingle) {
  return cudaStreamAttachMemAsync(stream, static_cast<void*>(ptr), size, flags);
}

// CUDA 13's way to name a place.
cudaError_t cudaMemAdvise(const void* ptr, size_t size, cudaMemoryAdvise advice,
                          cudaMemLocation location);
cudaError_t cudaMemPrefetchAsync(const void* ptr, size_t size, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream = 0);

inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}

template <typename... Args>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Args...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <typename... Args>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Args...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <typename... Args>
cudaError_t cudaFuncSetSharedMemConfig(void (*kernel)(Args...), cudaSharedMemConfig config) {
  return cudaFuncSetSharedMemConfig(reinterpret_cast<const void*>(kernel), config);
}
template <typename... Args>
cudaError_t cudaFuncSetCacheConfig(void (*kernel)(Args...), cudaFuncCache config) {
  return cudaFuncSetCacheConfig(reinterpret_cast<const void*>(kernel), config);
}
template <typename T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}

// Copies to or from a __constant__ or __device__ variable, which is a global one here.

namespace emulator {
cudaError_t copy_to_symbol(void* symbol, size_t symbol_size, const void* from, size_t size,
                           size_t offset, cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                           bool waits = true);
cudaError_t copy_from_symbol(void* to, const void* symbol, size_t symbol_size, size_t size,
                             size_t offset, cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                             bool waits = true);
cudaError_t symbol_address(void** ptr, const void* symbol, size_t symbol_size);
cudaError_t check_stream(cudaStream_t stream);
}  // namespace emulator

template <typename T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t size, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice, EMULATOR_CALL_SITE) {
  emulator::CallSite site(file, line);
  return emulator::copy_to_symbol(&symbol, sizeof(T), from, size, offset, kind);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t size, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost, EMULATOR_CALL_SITE) {
  emulator::CallSite site(file, line);
  return emulator::copy_from_symbol(to, &symbol, sizeof(T), size, offset, kind);
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, size_t size, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream = 0,
                                    EMULATOR_CALL_SITE) {
  emulator::CallSite site(file, line);
  cudaError_t error = emulator::check_stream(stream);
  if (error != cudaSuccess) return error;
  return emulator::copy_to_symbol(&symbol, sizeof(T), from, size, offset, kind, stream, false);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t size, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream = 0,
                                      EMULATOR_CALL_SITE) {
  emulator::CallSite site(file, line);
  cudaError_t error = emulator::check_stream(stream);
  if (error != cudaSuccess) return error;
  return emulator::copy_from_symbol(to, &symbol, sizeof(T), size, offset, kind, stream, false);
}
/*! \brief The address of a variable of the device, for copies and as an argument of kernels. */
template <typename T>
cudaError_t cudaGetSymbolAddress(void** ptr, const T& symbol) {
  return emulator::symbol_address(ptr, &symbol, sizeof(T));
}
template <typename T>
cudaError_t cudaGetSymbolSize(size_t* size, const T&) {
  *size = sizeof(T);
  return cudaSuccess;
}

#endif  // CUDA_RUNTIME_H_

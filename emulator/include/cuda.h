/*!
 * \file cuda.h
 * \brief The functions of the CUDA driver that the emulated GPU has.
 *
 * Devices, contexts, memory, streams and events: the same ones as the runtime's. There are no
 * modules: kernels are compiled with the program and launched by kernel<<<...>>>().
 */
#ifndef CUDA_H_
#define CUDA_H_

// What helper headers look for.
#define __cuda_cuda_h__

#include "cuda_runtime_api.h"
#include "emulator/driver_attributes.h"
#include "emulator/driver_errors.h"

#define CUDA_VERSION 12080
#define CUDAAPI
#define CUDA_CB

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;
typedef cudaHostFn_t CUhostFn;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUarray_st* CUarray;

typedef enum CUctx_flags_enum {
  CU_CTX_SCHED_AUTO = 0x00,
  CU_CTX_SCHED_SPIN = 0x01,
  CU_CTX_SCHED_YIELD = 0x02,
  CU_CTX_SCHED_BLOCKING_SYNC = 0x04,
  CU_CTX_BLOCKING_SYNC = 0x04,
  CU_CTX_SCHED_MASK = 0x07,
  CU_CTX_MAP_HOST = 0x08,
  CU_CTX_LMEM_RESIZE_TO_MAX = 0x10,
  CU_CTX_FLAGS_MASK = 0xff
} CUctx_flags;

typedef enum CUlimit_enum {
  CU_LIMIT_STACK_SIZE = 0,
  CU_LIMIT_PRINTF_FIFO_SIZE = 1,
  CU_LIMIT_MALLOC_HEAP_SIZE = 2
} CUlimit;

typedef enum CUfunc_cache_enum {
  CU_FUNC_CACHE_PREFER_NONE = 0,
  CU_FUNC_CACHE_PREFER_SHARED = 1,
  CU_FUNC_CACHE_PREFER_L1 = 2,
  CU_FUNC_CACHE_PREFER_EQUAL = 3
} CUfunc_cache;

typedef enum CUmemorytype_enum {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
  CU_MEMORYTYPE_ARRAY = 3,
  CU_MEMORYTYPE_UNIFIED = 4
} CUmemorytype;

typedef enum CUpointer_attribute_enum {
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9
} CUpointer_attribute;

typedef enum CUmem_advise_enum {
  CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
  CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
  CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
  CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
  CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
  CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6
} CUmem_advise;

typedef enum CUcomputemode_enum {
  CU_COMPUTEMODE_DEFAULT = 0,
  CU_COMPUTEMODE_PROHIBITED = 2,
  CU_COMPUTEMODE_EXCLUSIVE_PROCESS = 3
} CUcomputemode;

typedef enum CUstream_flags_enum {
  CU_STREAM_DEFAULT = 0,
  CU_STREAM_NON_BLOCKING = 1
} CUstream_flags;

typedef enum CUevent_flags_enum {
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_BLOCKING_SYNC = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_EVENT_INTERPROCESS = 4
} CUevent_flags;

typedef enum CUmemAttach_flags_enum {
  CU_MEM_ATTACH_GLOBAL = 1,
  CU_MEM_ATTACH_HOST = 2,
  CU_MEM_ATTACH_SINGLE = 4
} CUmemAttach_flags;

#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_MEMHOSTALLOC_PORTABLE 0x01
#define CU_MEMHOSTALLOC_DEVICEMAP 0x02
#define CU_MEMHOSTALLOC_WRITECOMBINED 0x04
#define CU_MEMHOSTREGISTER_PORTABLE 0x01
#define CU_MEMHOSTREGISTER_DEVICEMAP 0x02
#define CU_DEVICE_CPU ((CUdevice) - 1)
#define CU_DEVICE_INVALID ((CUdevice) - 2)

/*! \brief A copy of a rectangle. */
typedef struct CUDA_MEMCPY2D_st {
  size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUdevprop_st {
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  int sharedMemPerBlock, totalConstantMemory, SIMDWidth, memPitch, regsPerBlock, clockRate;
  int textureAlign;
} CUdevprop;

/*! \brief CUDA 13's parameters of a context; none of them means anything here. */
typedef struct CUctxCreateParams_st CUctxCreateParams;

extern "C" {

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int* version);
CUresult cuGetErrorString(CUresult error, const char** text);
CUresult cuGetErrorName(CUresult error, const char** name);

// The device.
CUresult cuDeviceGet(CUdevice* device, int number);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGetName(char* name, int size, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device);
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device);
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device);
CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id);
CUresult cuDeviceCanAccessPeer(int* can_access, CUdevice device, CUdevice peer);

// Contexts. All of them see the same memory.
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxReset(CUdevice device);
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active);
CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxPushCurrent(CUcontext context);
CUresult cuCtxPopCurrent(CUcontext* context);
CUresult cuCtxGetDevice(CUdevice* device);
CUresult cuCtxGetFlags(unsigned* flags);
CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version);
CUresult cuCtxSynchronize();
CUresult cuCtxGetLimit(size_t* value, CUlimit limit);
CUresult cuCtxSetLimit(CUlimit limit, size_t value);
CUresult cuCtxGetCacheConfig(CUfunc_cache* config);
CUresult cuCtxSetCacheConfig(CUfunc_cache config);
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);

// Memory.
CUresult cuMemGetInfo(size_t* free, size_t* total);
CUresult cuMemAlloc(CUdeviceptr* ptr, size_t size);
CUresult cuMemAllocPitch(CUdeviceptr* ptr, size_t* pitch, size_t width, size_t height,
                         unsigned element_size);
CUresult cuMemAllocManaged(CUdeviceptr* ptr, size_t size, unsigned flags);
CUresult cuMemAllocAsync(CUdeviceptr* ptr, size_t size, CUstream stream);
CUresult cuMemFree(CUdeviceptr ptr);
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
CUresult cuMemGetAddressRange(CUdeviceptr* start, size_t* size, CUdeviceptr ptr);
CUresult cuMemAllocHost(void** ptr, size_t size);
CUresult cuMemHostAlloc(void** ptr, size_t size, unsigned flags);
CUresult cuMemFreeHost(void* ptr);
CUresult cuMemHostRegister(void* ptr, size_t size, unsigned flags);
CUresult cuMemHostUnregister(void* ptr);
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned flags);
CUresult cuMemHostGetFlags(unsigned* flags, void* ptr);
CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuMemAdvise(CUdeviceptr ptr, size_t size, CUmem_advise advice, CUdevice device);
CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t size, CUdevice device, CUstream stream);

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream);
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t size);
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t size, CUstream stream);
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t size);
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t size, CUstream stream);
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size);
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream);
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* copy);
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream);
// `count` elements of 8, 16 or 32 bits.
CUresult cuMemsetD8(CUdeviceptr ptr, unsigned char value, size_t count);
CUresult cuMemsetD16(CUdeviceptr ptr, unsigned short value, size_t count);
CUresult cuMemsetD32(CUdeviceptr ptr, unsigned value, size_t count);
CUresult cuMemsetD8Async(CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD16Async(CUdeviceptr ptr, unsigned short value, size_t count, CUstream stream);
CUresult cuMemsetD32Async(CUdeviceptr ptr, unsigned value, size_t count, CUstream stream);

// Streams and events.
CUresult cuStreamCreate(CUstream* stream, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamGetFlags(CUstream stream, unsigned* flags);
CUresult cuStreamGetPriority(CUstream stream, int* priority);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data);
CUresult cuEventCreate(CUevent* event, unsigned flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventQuery(CUevent event);
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
CUresult cuEventDestroy(CUevent event);

CUresult cuProfilerStart();
CUresult cuProfilerStop();

}  // extern "C"

inline CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned flags,
                            CUdevice device) {
  return cuCtxCreate(context, flags, device);
}

#endif  // CUDA_H_

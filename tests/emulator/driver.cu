// The driver's functions, as programs call them: without the runtime, and beside it.
#include <cuda.h>

#include <cstring>

#include "check.h"

#define OK(call) CHECK((call) == CUDA_SUCCESS)

__global__ void add_one(int* values, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += 1;
}

CASE(nothing_works_before_cuInit) {
  int count;
  CUdevice device;
  CUcontext context;
  CUdeviceptr ptr;
  CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(cuMemAlloc(&ptr, 4) == CUDA_ERROR_NOT_INITIALIZED);
  CHECK(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
  OK(cuInit(0));
  OK(cuDeviceGetCount(&count));
  CHECK(count == 1 && cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE);
  OK(cuDeviceGet(&device, 0));
  CHECK(cuMemAlloc(&ptr, 4) == CUDA_ERROR_INVALID_CONTEXT);
  OK(cuCtxCreate(&context, 0, device));
  OK(cuMemAlloc(&ptr, 4));
  OK(cuMemFree(ptr));
  OK(cuCtxDestroy(context));
  CHECK(cuCtxDestroy(context) == CUDA_ERROR_INVALID_CONTEXT);
}

CASE(the_device_is_described) {
  char name[64], id[16];
  int major, minor, value, version;
  size_t bytes;
  CUdevprop p;
  CUuuid uuid;
  OK(cuInit(0));
  OK(cuDriverGetVersion(&version));
  CHECK(version == CUDA_VERSION);
  OK(cuDeviceGetName(name, sizeof name, 0));
  CHECK(std::strlen(name) > 0);
  OK(cuDeviceComputeCapability(&major, &minor, 0));
  OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  CHECK(value == major);
  OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
  CHECK(value == 1024);
  OK(cuDeviceGetProperties(&p, 0));
  CHECK(p.SIMDWidth == 32 && p.maxThreadsDim[2] == 64);
  OK(cuDeviceTotalMem(&bytes, 0));
  OK(cuDeviceGetUuid(&uuid, 0));
  OK(cuDeviceGetPCIBusId(id, sizeof id, 0));
  CHECK(bytes > 0 && cuDeviceTotalMem(&bytes, 2) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuDeviceGetName(nullptr, 4, 0) == CUDA_ERROR_INVALID_VALUE);
}

CASE(errors_have_names_and_words) {
  const char* text;
  OK(cuGetErrorName(CUDA_ERROR_INVALID_CONTEXT, &text));
  CHECK(std::strcmp(text, "CUDA_ERROR_INVALID_CONTEXT") == 0);
  OK(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  CHECK(std::strcmp(text, "an illegal memory access was encountered") == 0);
  CHECK(cuGetErrorString(static_cast<CUresult>(4711), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}

CASE(contexts_are_a_stack) {
  CUcontext a, b, primary, now;
  CUdevice device;
  unsigned version, flags;
  int active;
  OK(cuInit(0));
  OK(cuCtxCreate(&a, CU_CTX_SCHED_YIELD, 0));
  OK(cuCtxCreate(&b, nullptr, 0, 0));
  OK(cuCtxGetCurrent(&now));
  CHECK(now == b);
  OK(cuCtxPopCurrent(&now));
  CHECK(now == b);
  OK(cuCtxGetFlags(&flags));
  OK(cuCtxGetDevice(&device));
  OK(cuCtxGetApiVersion(a, &version));
  CHECK(flags == CU_CTX_SCHED_YIELD && device == 0 && version >= 3020);
  OK(cuCtxPushCurrent(b));
  OK(cuCtxDestroy(b));
  OK(cuCtxGetCurrent(&now));
  CHECK(now == a);
  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  OK(cuCtxSetCurrent(primary));
  OK(cuCtxGetCurrent(&now));
  CHECK(active == 1 && now == primary);
  OK(cuDevicePrimaryCtxRelease(0));
}

CASE(memory_is_the_runtimes) {
  CUcontext context;
  CUdeviceptr ptr, start;
  size_t size, free, total;
  int host[6] = {1, 2, 3, 4, 5, 6}, out[6] = {};
  OK(cuInit(0));
  OK(cuCtxCreate(&context, 0, 0));
  OK(cuMemAlloc(&ptr, sizeof host));
  OK(cuMemcpyHtoD(ptr, host, sizeof host));
  add_one<<<1, 32>>>(reinterpret_cast<int*>(ptr), 6);
  OK(cuCtxSynchronize());
  OK(cuMemcpyDtoH(out, ptr, sizeof out));
  for (int i = 0; i < 6; ++i) CHECK(out[i] == host[i] + 1);
  OK(cuMemGetAddressRange(&start, &size, ptr + 8));
  CHECK(start == ptr && size == sizeof host);
  OK(cuMemsetD32(ptr + 4, 0x01020304, 2));
  OK(cuMemsetD16(ptr + 12, 0xabcd, 2));
  OK(cuMemsetD8(ptr + 16, 7, 4));
  OK(cuMemcpyDtoH(out, ptr, sizeof out));
  CHECK(out[0] == 2 && out[1] == 0x01020304 && out[2] == 0x01020304);
  CHECK(out[3] == static_cast<int>(0xabcdabcd) && out[4] == 0x07070707 && out[5] == 7);
  CHECK(cuMemsetD32(ptr + 2, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemsetD32(ptr, 0, 7) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyDtoH(out, ptr, sizeof out + 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cudaGetLastError() == cudaSuccess);  // the driver's errors are no business of the runtime
  OK(cuMemGetInfo(&free, &total));
  CHECK(total - free == sizeof host);
  unsigned type;
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  OK(cuMemFree(ptr));
  CHECK(cuMemFree(ptr) == CUDA_ERROR_INVALID_VALUE);
}

CASE(rectangles_streams_and_events) {
  CUdeviceptr image;
  size_t pitch;
  char in[3][8] = {"abcdefg", "hijklmn", "opqrstu"}, out[3][4] = {};
  CUstream stream;
  CUevent before, after;
  float milliseconds = -1;
  OK(cuInit(0));
  CUcontext context;
  OK(cuCtxCreate(&context, 0, 0));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&before, CU_EVENT_DEFAULT));
  OK(cuEventCreate(&after, CU_EVENT_DEFAULT));
  OK(cuMemAllocPitch(&image, &pitch, 8, 3, 4));
  OK(cuEventRecord(before, stream));
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = image;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 8;
  copy.Height = 3;
  OK(cuMemcpy2DAsync(&copy, stream));
  OK(cuEventRecord(after, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuEventElapsedTime(&milliseconds, before, after));
  CHECK(milliseconds >= 0);
  CUDA_MEMCPY2D back = {};
  back.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  back.srcDevice = image;
  back.srcPitch = pitch;
  back.srcXInBytes = 2;
  back.srcY = 1;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = out;
  back.dstPitch = 4;
  back.WidthInBytes = 3;
  back.Height = 2;
  OK(cuMemcpy2D(&back));
  CHECK(std::strcmp(out[0], "jkl") == 0 && std::strcmp(out[1], "qrs") == 0);
  OK(cuEventDestroy(before));
  OK(cuEventDestroy(after));
  OK(cuStreamDestroy(stream));
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_INVALID_HANDLE);
  OK(cuMemFree(image));
}

CASE(the_runtime_starts_the_driver_too) {
  CUcontext context = nullptr;
  CUdevice device = -1;
  CHECK(cudaFree(0) == cudaSuccess);
  OK(cuCtxGetCurrent(&context));
  OK(cuCtxGetDevice(&device));
  CHECK(context != nullptr && device == 0);
}

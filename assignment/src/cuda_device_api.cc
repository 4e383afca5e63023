/*!
 * \file cuda_device_api.cc
 * \brief Memory of CUDA devices, real or emulated.
 */
#include "cuda_device_api.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>

#include "cuda_check.h"

namespace dlsys {
namespace runtime {
namespace {

void ThrowOnError(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // the error is reported here, once
  throw std::runtime_error(what + ": " + cuda_error_text(error).c_str());
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

void CUDADeviceAPI::Reset() {
  cudaDeviceReset();
  Synchronize("cudaDeviceReset");
}

}  // namespace runtime
}  // namespace dlsys

#ifdef __CUDA_EMULATOR__

int64_t dlsys_raw_allocations() { return emulator_cuda_malloc_count(); }
int64_t dlsys_bytes_to_host() { return emulator_bytes_to_host(); }
int64_t dlsys_live_handles() { return emulator_cublas_handles_live(); }
std::string dlsys_failure() { return emulator_failure(); }

#else

// The linker sends every call of these functions in this library here (--wrap=cudaMalloc and so
// on), also those of gpu_op.cu, so that growing memory and work on the host can be seen from
// outside, and a refused launch be told in numbers.
static std::atomic<int64_t> raw_allocations(0), bytes_to_host(0), live_handles(0);

int64_t dlsys_raw_allocations() { return raw_allocations; }
int64_t dlsys_bytes_to_host() { return bytes_to_host; }
int64_t dlsys_live_handles() { return live_handles; }

static cudaError_t count_copy(cudaError_t error, const void* to, size_t size) {
  cudaPointerAttributes attributes;
  bool known = error == cudaSuccess && cudaPointerGetAttributes(&attributes, to) == cudaSuccess;
  if (known && attributes.type != cudaMemoryTypeDevice) bytes_to_host += size;
  return error;
}

// The numbers of a launch that was refused, which the error does not tell.
static thread_local std::string refused;

std::string dlsys_failure() { return std::exchange(refused, std::string()); }

static int at_most(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, attribute, device);
  return value;
}

static std::string sizes(const dim3& of) {
  return std::to_string(of.x) + " x " + std::to_string(of.y) + " x " + std::to_string(of.z);
}

static cudaError_t note_launch(cudaError_t error, const dim3& grid, const dim3& block,
                               size_t shared) {
  refused.clear();
  if (error == cudaSuccess) return error;
  const size_t threads = static_cast<size_t>(block.x) * block.y * block.z;
  refused = "the launch asks for a grid of " + sizes(grid) + " blocks, " + std::to_string(threads) +
            " threads a block (" + sizes(block) + ") and " + std::to_string(shared) +
            " bytes of dynamic shared memory; each size is at least 1, and a block has at most " +
            std::to_string(at_most(cudaDevAttrMaxThreadsPerBlock)) + " threads and " +
            std::to_string(at_most(cudaDevAttrMaxSharedMemoryPerBlock)) +
            " bytes of shared memory, less where a thread needs many registers";
  return error;
}

extern "C" cudaError_t __real_cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block,
                                               void** arguments, size_t shared,
                                               cudaStream_t stream);
extern "C" cudaError_t __wrap_cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block,
                                               void** arguments, size_t shared,
                                               cudaStream_t stream) {
  cudaError_t error = __real_cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
  return note_launch(error, grid, block, shared);
}

// What <<<>>> becomes in CUDA 13; older ones have no such function.
#if CUDART_VERSION >= 13000
extern "C" cudaError_t __real___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                 void** arguments, size_t shared,
                                                 cudaStream_t stream);
extern "C" cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                 void** arguments, size_t shared,
                                                 cudaStream_t stream) {
  cudaError_t error = __real___cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
  return note_launch(error, grid, block, shared);
}
#endif

extern "C" cudaError_t __real_cudaMalloc(void** ptr, size_t size);
extern "C" cudaError_t __wrap_cudaMalloc(void** ptr, size_t size) {
  cudaError_t error = __real_cudaMalloc(ptr, size);
  if (error == cudaSuccess) ++raw_allocations;
  return error;
}

extern "C" cudaError_t __real_cudaMemcpy(void* to, const void* from, size_t size,
                                         cudaMemcpyKind kind);
extern "C" cudaError_t __wrap_cudaMemcpy(void* to, const void* from, size_t size,
                                         cudaMemcpyKind kind) {
  return count_copy(__real_cudaMemcpy(to, from, size, kind), to, size);
}

extern "C" cudaError_t __real_cudaMemcpyAsync(void* to, const void* from, size_t size,
                                              cudaMemcpyKind kind, cudaStream_t stream);
extern "C" cudaError_t __wrap_cudaMemcpyAsync(void* to, const void* from, size_t size,
                                              cudaMemcpyKind kind, cudaStream_t stream) {
  return count_copy(__real_cudaMemcpyAsync(to, from, size, kind, stream), to, size);
}

extern "C" cudaError_t __real_cudaMemcpy2D(void* to, size_t to_pitch, const void* from,
                                           size_t from_pitch, size_t width, size_t height,
                                           cudaMemcpyKind kind);
extern "C" cudaError_t __wrap_cudaMemcpy2D(void* to, size_t to_pitch, const void* from,
                                           size_t from_pitch, size_t width, size_t height,
                                           cudaMemcpyKind kind) {
  cudaError_t error = __real_cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
  return count_copy(error, to, width * height);
}

// A function after which the host can read so many bytes more.
#define COUNTED(type, name, parameters, arguments, bytes) \
  extern "C" type __real_##name parameters;               \
  extern "C" type __wrap_##name parameters {              \
    bytes_to_host += bytes;                               \
    return __real_##name arguments;                       \
  }

COUNTED(cudaError_t, cudaMallocManaged, (void** ptr, size_t size, unsigned flags),
        (ptr, size, flags), size)
COUNTED(cudaError_t, cudaMallocHost, (void** ptr, size_t size), (ptr, size), size)
COUNTED(cudaError_t, cudaHostAlloc, (void** ptr, size_t size, unsigned flags), (ptr, size, flags),
        size)
COUNTED(cudaError_t, cudaHostRegister, (void* ptr, size_t size, unsigned flags), (ptr, size, flags),
        size)
COUNTED(cudaError_t, cudaMemcpyFromSymbol,
        (void* to, const void* symbol, size_t size, size_t offset, cudaMemcpyKind kind),
        (to, symbol, size, offset, kind), size)
COUNTED(cublasStatus_t, cublasGetVector,
        (int n, int size, const void* x, int x_step, void* y, int y_step),
        (n, size, x, x_step, y, y_step), static_cast<int64_t>(n) * size)
COUNTED(cublasStatus_t, cublasGetMatrix,
        (int rows, int columns, int size, const void* a, int a_step, void* b, int b_step),
        (rows, columns, size, a, a_step, b, b_step), static_cast<int64_t>(rows) * columns * size)

// A result of one number goes to the host, unless the handle says that it lies on the device.
static int64_t bytes_of_result(cublasHandle_t handle, size_t size) {
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_HOST;
  cublasGetPointerMode(handle, &mode);
  return mode == CUBLAS_POINTER_MODE_HOST ? size : 0;
}

#define COUNTED_RESULT(name, type, result_type)                                           \
  COUNTED(cublasStatus_t, name,                                                           \
          (cublasHandle_t handle, int n, const type* x, int x_step, result_type* result), \
          (handle, n, x, x_step, result), bytes_of_result(handle, sizeof(result_type)))

COUNTED_RESULT(cublasSasum_v2, float, float)
COUNTED_RESULT(cublasSnrm2_v2, float, float)
COUNTED_RESULT(cublasIsamax_v2, float, int)
COUNTED_RESULT(cublasIsamin_v2, float, int)
COUNTED(cublasStatus_t, cublasSdot_v2,
        (cublasHandle_t handle, int n, const float* x, int x_step, const float* y, int y_step,
         float* result),
        (handle, n, x, x_step, y, y_step, result), bytes_of_result(handle, sizeof(float)))
COUNTED(void, __cudaRegisterManagedVar,
        (void** binary, void** host, char* device, const char* name, int ext, size_t size,
         int constant, int global),
        (binary, host, device, name, ext, size, constant, global), size)

extern "C" cublasStatus_t __real_cublasCreate_v2(cublasHandle_t* handle);
extern "C" cublasStatus_t __wrap_cublasCreate_v2(cublasHandle_t* handle) {
  cublasStatus_t status = __real_cublasCreate_v2(handle);
  if (status == CUBLAS_STATUS_SUCCESS) ++live_handles;
  return status;
}

extern "C" cublasStatus_t __real_cublasDestroy_v2(cublasHandle_t handle);
extern "C" cublasStatus_t __wrap_cublasDestroy_v2(cublasHandle_t handle) {
  cublasStatus_t status = __real_cublasDestroy_v2(handle);
  if (status == CUBLAS_STATUS_SUCCESS) --live_handles;
  return status;
}

#endif

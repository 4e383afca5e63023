/*!
 * \file cublas_handle.cc
 * \brief cuBLAS handles, and the checks of its arguments.
 */
#include "cublas_handle.h"

#include <cblas.h>

#include <cstdio>
#include <mutex>
#include <set>

#include "arena.h"
#include "error.h"
#include "memory.h"
#include "stream.h"

namespace emulator {
namespace {

std::mutex mutex;
std::set<cublasHandle_t> handles;

bool is_handle(cublasHandle_t handle) {
  std::lock_guard<std::mutex> lock(mutex);
  return handles.count(handle) > 0;
}

struct StatusText {
  cublasStatus_t status;
  const char *name, *text;
};

const StatusText kStatus[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
     "the function requires an architectural feature absent from the architecture of the device"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR",
     "an access to GPU memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the function failed to launch on the GPU"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the functionality requested is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR",
     "the functionality requested requires some license and an error was detected"},
};

const StatusText* find(cublasStatus_t status) {
  for (const StatusText& entry : kStatus)
    if (entry.status == status) return &entry;
  return nullptr;
}

}  // namespace

// The matrix library's own threads may not touch device memory; ours split the work instead.
void use_own_threads() {
  static std::once_flag once;
  std::call_once(once, [] { scipy_openblas_set_num_threads(1); });
}

cublasStatus_t check_handle(cublasHandle_t handle) {
  if (!is_replayed(handle) && !is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  return sticky_error() == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t illegal_address(const char* function, const char* operand, const void* ptr,
                               size_t size) {
  char why[200];
  std::snprintf(why, sizeof why, "emulated GPU: %s: %s at %p is not %zu bytes of device memory",
                function, operand, ptr, size);
  set_sticky_error(cudaErrorIllegalAddress, why);
  return CUBLAS_STATUS_EXECUTION_FAILED;
}

bool is_scalar(cublasHandle_t handle, const void* ptr, size_t size) {
  if (ptr == nullptr) return false;
  EMULATOR_CHECK(written(const_cast<void*>(ptr), size));  // perhaps a result
  return handle->pointer_mode == CUBLAS_POINTER_MODE_HOST || is_device_matrix(ptr, size);
}

bool is_device_matrix(const void* ptr, size_t span) {
  return span == 0 || is_device_range(ptr, span) || is_shared_host_memory(ptr);
}

}  // namespace emulator

using emulator::handles;

int64_t emulator_cublas_handles_live() {
  std::lock_guard<std::mutex> lock(emulator::mutex);
  return static_cast<int64_t>(handles.size());
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (emulator::sticky_error() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  emulator::use_own_threads();
  std::lock_guard<std::mutex> lock(emulator::mutex);
  *handle = new cublasContext{nullptr, CUBLAS_POINTER_MODE_HOST, CUBLAS_DEFAULT_MATH,
                              CUBLAS_ATOMICS_NOT_ALLOWED};
  handles.insert(*handle);
  EMULATOR_HOST_CALL();
  EMULATOR_CHECK(cublas_handle_created(*handle, handle));
  return CUBLAS_STATUS_SUCCESS;
}

// The memory is kept, so that no new handle can be taken for one that was destroyed.
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  EMULATOR_CHECK(cublas_handle_destroyed(handle));
  std::lock_guard<std::mutex> lock(emulator::mutex);
  return handles.erase(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

// Needs no handle.
cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  EMULATOR_CHECK_HANDLE(handle);
  if (!emulator::is_stream(stream)) return CUBLAS_STATUS_INVALID_VALUE;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  EMULATOR_CHECK_HANDLE(handle);
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  EMULATOR_CHECK_HANDLE(handle);
  if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
    return CUBLAS_STATUS_INVALID_VALUE;
  handle->pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  EMULATOR_CHECK_HANDLE(handle);
  if (mode == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *mode = handle->pointer_mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  EMULATOR_CHECK_HANDLE(handle);
  handle->math_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  EMULATOR_CHECK_HANDLE(handle);
  if (mode == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *mode = handle->math_mode;
  return CUBLAS_STATUS_SUCCESS;
}

// Nothing is added up by atomics here, and no workspace is needed.
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  EMULATOR_CHECK_HANDLE(handle);
  handle->atomics_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  EMULATOR_CHECK_HANDLE(handle);
  if (mode == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *mode = handle->atomics_mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void*, size_t) {
  EMULATOR_CHECK_HANDLE(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL)
    return CUBLAS_STATUS_INVALID_VALUE;
  const int version[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
  *value = version[type];
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  const emulator::StatusText* entry = emulator::find(status);
  return entry ? entry->text : "unknown status";
}

const char* cublasGetStatusName(cublasStatus_t status) {
  const emulator::StatusText* entry = emulator::find(status);
  return entry ? entry->name : "unknown status";
}

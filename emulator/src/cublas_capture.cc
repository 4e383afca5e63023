/*!
 * \file cublas_capture.cc
 * \brief Functions of cuBLAS as nodes of graphs.
 */
#include "cublas_capture.h"

#include "capture.h"
#include "error.h"

namespace emulator {
namespace {

thread_local bool dry_run = false;
thread_local cublasHandle_t replayed = nullptr;

// A node of cuBLAS is a kernel to the program, as on a GPU.
NodeWork work_of(const char* name, const cublasContext& settings, const CublasWork& later) {
  NodeWork work;
  work.type = cudaGraphNodeTypeKernel;
  work.label = name;
  work.run = [settings, later](cudaStream_t stream) {
    cublasContext own = settings;
    own.stream = stream;
    const cublasHandle_t before = replayed;
    replayed = &own;
    const cublasStatus_t status = later(&own);
    replayed = before;
    if (sticky_error() != cudaSuccess) return sticky_error();
    return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorLaunchFailure;
  };
  return work;
}

cublasStatus_t status_of(cudaError_t error) {
  return report(error) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

bool is_dry_run() { return dry_run; }

bool is_replayed(cublasHandle_t handle) { return handle != nullptr && handle == replayed; }

cublasStatus_t submit_cublas(const char* name, cublasHandle_t handle, cudaStream_t stream,
                             const CublasWork& work) {
  dry_run = true;
  cublasStatus_t status = work(handle);
  dry_run = false;
  if (status != kWouldRun) return status;
  status = CUBLAS_STATUS_SUCCESS;
  const auto run_now = [&](cudaStream_t) {
    status = work(handle);
    return cudaSuccess;
  };
  const cublasContext fresh{stream, CUBLAS_POINTER_MODE_HOST, CUBLAS_DEFAULT_MATH,
                            CUBLAS_ATOMICS_NOT_ALLOWED};
  const cublasContext& settings = handle != nullptr ? *handle : fresh;
  const cudaError_t error = submit_while_capturing(stream, work_of(name, settings, work), run_now);
  return error == cudaSuccess ? status : status_of(error);
}

cublasStatus_t refuse_result_on_host(cublasHandle_t handle) {
  if (handle->pointer_mode != CUBLAS_POINTER_MODE_HOST || !is_any_capture())
    return CUBLAS_STATUS_SUCCESS;
  return status_of(refuse_in_capture(handle->stream));
}

}  // namespace emulator

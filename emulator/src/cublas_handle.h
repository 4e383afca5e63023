/*!
 * \file cublas_handle.h
 * \brief What every cuBLAS function checks before it begins.
 */
#ifndef EMULATOR_CUBLAS_HANDLE_H_
#define EMULATOR_CUBLAS_HANDLE_H_

#include <cstddef>

#include "checked.h"
#include "cublas_v2.h"

struct cublasContext {
  cudaStream_t stream;
  cublasPointerMode_t pointer_mode;
  cublasMath_t math_mode;
  cublasAtomicsMode_t atomics_mode;
};

namespace emulator {

/*! \brief What a function returns in a dry run where it would begin to work. */
const cublasStatus_t kWouldRun = static_cast<cublasStatus_t>(-1);
bool is_dry_run();
/*! \brief Whether it is the handle of a node that this thread runs. */
bool is_replayed(cublasHandle_t handle);

/*! \brief Whether the handle lives and the device is in order. */
cublasStatus_t check_handle(cublasHandle_t handle);

/*! \brief Whether a handle of cuBLASLt lives. */
bool is_lt_handle(struct cublasLtContext* handle);

/*! \brief Has OpenBLAS work on the calling thread alone: its own may not touch device memory. */
void use_own_threads();

/*! \brief EXECUTION_FAILED, and an illegal address that stays: what a GPU's kernel would do. */
cublasStatus_t illegal_address(const char* function, const char* operand, const void* ptr,
                               size_t size);

/*! \brief Whether alpha, beta or a result lies where the handle's pointer mode says. */
bool is_scalar(cublasHandle_t handle, const void* ptr, size_t size);

/*! \brief Bytes from the first to the last element of a matrix stored by columns. */
inline size_t matrix_span(int rows, int columns, int ld, size_t element) {
  if (rows == 0 || columns == 0) return 0;
  return (static_cast<size_t>(ld) * (columns - 1) + rows) * element;
}

/*! \brief Bytes from the first to the last element of a vector. */
inline size_t vector_span(int n, int step, size_t element) {
  if (n <= 0) return 0;
  return (static_cast<size_t>(step < 0 ? -step : step) * (n - 1) + 1) * element;
}

/*! \brief Whether a matrix lies in one allocation of the device. */
bool is_device_matrix(const void* ptr, size_t span);

}  // namespace emulator

#define EMULATOR_CHECK_HANDLE(handle)                       \
  EMULATOR_HOST_CALL();                                     \
  do {                                                      \
    cublasStatus_t status = emulator::check_handle(handle); \
    if (status != CUBLAS_STATUS_SUCCESS) return status;     \
  } while (0)

#ifdef EMULATOR_CHECKED
#define EMULATOR_TELL_OPERAND(function, operand, ptr, span)       \
  emulator::checked::used_by_cublas(function, operand, ptr, span, \
                                    emulator::is_device_matrix(ptr, span))
#else
#define EMULATOR_TELL_OPERAND(function, operand, ptr, span) ((void)0)
#endif

#define EMULATOR_CHECK_OPERAND(function, operand, ptr, span)          \
  do {                                                                \
    if (emulator::is_dry_run()) return emulator::kWouldRun;           \
    EMULATOR_TELL_OPERAND(function, operand, ptr, span);              \
    if (!emulator::is_device_matrix(ptr, span))                       \
      return emulator::illegal_address(function, operand, ptr, span); \
  } while (0)

#endif  // EMULATOR_CUBLAS_HANDLE_H_

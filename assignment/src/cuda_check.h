/*!
 * \file cuda_check.h
 * \brief What every launcher needs: sizes, shape checks, and errors that reach Python.
 */
#ifndef DLSYS_CUDA_CHECK_H_
#define DLSYS_CUDA_CHECK_H_

#include <cuda_runtime.h>

#include <string>

#include "c_runtime_api.h"

/*! \brief Leaves the launcher with a message unless the condition holds. */
#define REQUIRE(condition, message) \
  if (!(condition)) return DLSetLastError((message).c_str(), -1)

/*! \brief Number of elements. */
inline int64_t size_of(const DLArray* arr) {
  int64_t size = 1;
  for (int i = 0; i < arr->ndim; ++i) size *= arr->shape[i];
  return size;
}

/*! \brief The elements, as the float32 that they always are. */
inline float* data_of(const DLArray* arr) { return static_cast<float*>(arr->data); }

/*! \brief Whether two arrays have the same shape. */
inline bool same_shape(const DLArray* a, const DLArray* b) {
  bool same = a->ndim == b->ndim;
  for (int i = 0; same && i < a->ndim; ++i) same = a->shape[i] == b->shape[i];
  return same;
}

/*! \brief The shape as Python prints it. */
inline std::string shape_of(const DLArray* arr) {
  std::string text = "(";
  for (int i = 0; i < arr->ndim; ++i)
    text += (i ? ", " : "") + std::to_string(arr->shape[i]) + (arr->ndim == 1 ? "," : "");
  return text + ")";
}

/*! \brief Number of blocks of `threads` threads that cover n elements. */
inline unsigned blocks_for(int64_t n, int64_t threads) {
  return static_cast<unsigned>((n + threads - 1) / threads);
}

/*! \brief The return code of a launcher: whether the launch just made was accepted. */
inline int launched(const char* kernel) {
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return 0;
  std::string message = std::string(kernel) + ": " + cudaGetErrorString(error) + " (CUDA error " +
                        std::to_string(static_cast<int>(error)) + ")";
  return DLSetLastError(message.c_str(), -1);
}

/*! \brief The return code of a hole of the assignment. */
inline int not_written(const char* task) {
  return DLSetLastError((std::string("task ") + task + " is not written yet").c_str(), -2);
}

#endif  // DLSYS_CUDA_CHECK_H_

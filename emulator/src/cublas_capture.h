/*!
 * \file cublas_capture.h
 * \brief Functions of cuBLAS on a stream that captures: checked now, and done as a node.
 */
#ifndef EMULATOR_CUBLAS_CAPTURE_H_
#define EMULATOR_CUBLAS_CAPTURE_H_

#include <functional>
#include <tuple>

#include "cublas_handle.h"
#include "stream.h"
#include "variables.h"

namespace emulator {

/*! \brief Numbers as alpha and beta, which a function reads when it is called if they lie on the
 * host. */
template <typename T, int count>
struct Numbers {
  const T* ptr;
};
template <typename T>
Numbers<T, 1> number(const T* ptr) {
  return {ptr};
}
/*! \brief The five numbers of a modified rotation. */
template <typename T>
Numbers<T, 5> rotation(const T* ptr) {
  return {ptr};
}

/*! \brief The same, with copies of what lies on the host. */
template <typename T, int count>
class KeptNumbers {
 public:
  KeptNumbers(const T* ptr, cublasPointerMode_t mode) : ptr_(ptr) {
    is_kept_ = ptr != nullptr && mode == CUBLAS_POINTER_MODE_HOST;
    for (int i = 0; is_kept_ && i < count; ++i) kept_[i] = ptr[i];
  }
  const T* get() const { return is_kept_ ? kept_ : ptr_; }

 private:
  const T* ptr_;
  bool is_kept_;
  T kept_[count] = {};
};

template <typename T>
T given(T value) {
  return value;
}
template <typename T, int count>
const T* given(Numbers<T, count> numbers) {
  return numbers.ptr;
}
template <typename T, int count>
const T* given(const KeptNumbers<T, count>& numbers) {
  return numbers.get();
}
template <typename T>
bool is_variable_number(const T&) {
  return false;
}
template <typename T, int count>
bool is_variable_number(Numbers<T, count> numbers) {
  return is_variable(numbers.ptr);
}
template <typename T>
T keep(T value, cublasPointerMode_t) {
  return value;
}
template <typename T, int count>
KeptNumbers<T, count> keep(Numbers<T, count> numbers, cublasPointerMode_t mode) {
  return {numbers.ptr, mode};
}

/*! \brief Work of cuBLAS, with the handle that it gets. */
typedef std::function<cublasStatus_t(cublasHandle_t)> CublasWork;

/*! \brief Checks work, and does it in a stream: now, or later with the settings that the handle
 * has. Without a handle, with those that a new one has. */
cublasStatus_t submit_cublas(const char* name, cublasHandle_t handle, cudaStream_t stream,
                             const CublasWork& work);
/*! \brief Refuses what leaves its result on the host: it would have to wait. */
cublasStatus_t refuse_result_on_host(cublasHandle_t handle);

template <typename Function, typename... Kept>
__attribute__((noinline)) cublasStatus_t submit_call(const char* name, cublasHandle_t handle,
                                                     Function function, const Kept&... kept) {
  const std::tuple<Kept...> all(kept...);
  return submit_cublas(name, handle, handle->stream, [=](cublasHandle_t own) {
    return std::apply([&](const Kept&... each) { return function(name, own, given(each)...); },
                      all);
  });
}

template <typename Function, typename... Args>
cublasStatus_t call_cublas(const char* name, cublasHandle_t handle, Function function,
                           Args... args) {
  if (check_handle(handle) != CUBLAS_STATUS_SUCCESS) return function(name, handle, given(args)...);
  if (!is_any_capture()) {
    const bool on_device = handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
    const KernelVariables variables(on_device && (is_variable_number(args) || ...));
    return function(name, handle, given(keep(args, handle->pointer_mode))...);
  }
  return submit_call(name, handle, function, keep(args, handle->pointer_mode)...);
}

}  // namespace emulator

// Calls emulator::function(name, handle, arguments...), of which numbers say that they are such.
#define EMULATOR_CUBLAS(function, name, ...)                                                 \
  emulator::call_cublas(                                                                     \
      name, handle,                                                                          \
      [](const char* emulator_name, cublasHandle_t emulator_handle, auto... emulator_args) { \
        return emulator::function(emulator_name, emulator_handle, emulator_args...);         \
      },                                                                                     \
      __VA_ARGS__)

#endif  // EMULATOR_CUBLAS_CAPTURE_H_

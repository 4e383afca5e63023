/*!
 * \file cuda_check.h
 * \brief What every launcher needs: sizes, shape checks, and errors that reach Python.
 */
#ifndef DLSYS_CUDA_CHECK_H_
#define DLSYS_CUDA_CHECK_H_

#include <cuda_runtime.h>

#include "c_runtime_api.h"

/*!
 * \brief The text of an error: literals, shapes and strings, joined by +.
 *
 * Its functions are in cuda_check.cc, and <string> is not included here: compiling it takes longer
 * than compiling a kernel. Nobody could catch what they throw: the caller is Python.
 */
class ErrorText {
 public:
  ErrorText(const char* text) noexcept;
  template <typename String>
  ErrorText(const String& text) noexcept : ErrorText(text.c_str()) {}
  ErrorText(const ErrorText& other) noexcept;
  ErrorText& operator=(const ErrorText&) = delete;
  ~ErrorText();
  const char* c_str() const { return text_; }

 private:
  char* text_;
};
ErrorText operator+(const ErrorText& first, const ErrorText& second) noexcept;
ErrorText operator+(const ErrorText& first, const char* second) noexcept;
ErrorText operator+(const char* first, const ErrorText& second) noexcept;

/*! \brief Leaves the launcher with a message unless the condition holds. */
#define REQUIRE(condition, message) \
  if (!(condition)) return DLSetLastError(ErrorText(message).c_str(), -1)

/*! \brief Number of elements. */
int64_t size_of(const DLArray* arr);

/*! \brief The elements, as the float32 that they always are. */
inline float* data_of(const DLArray* arr) { return static_cast<float*>(arr->data); }

/*! \brief Whether two arrays have the same shape. */
bool same_shape(const DLArray* a, const DLArray* b);

/*! \brief The shape as Python prints it. */
ErrorText shape_of(const DLArray* arr) noexcept;

/*! \brief Number of blocks of `threads` threads that cover n elements. */
inline unsigned blocks_for(int64_t n, int64_t threads) {
  return static_cast<unsigned>((n + threads - 1) / threads);
}

/*! \brief A CUDA error in words; what the kernel did, too, where the emulated GPU knows it. */
ErrorText cuda_error_text(cudaError_t error) noexcept;

/*! \brief The return code of a launcher: whether the launch just made was accepted. */
int launched(const char* kernel);

/*! \brief The return code of a hole of the assignment. */
int not_written(const char* task);

#endif  // DLSYS_CUDA_CHECK_H_

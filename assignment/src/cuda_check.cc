/*!
 * \file cuda_check.cc
 * \brief Sizes, shapes and texts of errors.
 */
#include "cuda_check.h"

#include <cstring>
#include <string>

// In cuda_device_api.cc: what else is known of the last error; "" if nothing.
std::string dlsys_failure();

static char* copy_of(const char* text) {
  size_t size = std::strlen(text) + 1;
  return static_cast<char*>(std::memcpy(new char[size], text, size));
}

ErrorText::ErrorText(const char* text) noexcept : text_(copy_of(text)) {}
ErrorText::ErrorText(const ErrorText& other) noexcept : text_(copy_of(other.text_)) {}
ErrorText::~ErrorText() { delete[] text_; }

ErrorText operator+(const ErrorText& first, const ErrorText& second) noexcept {
  return first + second.c_str();
}
ErrorText operator+(const ErrorText& first, const char* second) noexcept {
  return std::string(first.c_str()) + second;
}
ErrorText operator+(const char* first, const ErrorText& second) noexcept {
  return std::string(first) + second.c_str();
}

int64_t size_of(const DLArray* arr) {
  int64_t size = 1;
  for (int i = 0; i < arr->ndim; ++i) size *= arr->shape[i];
  return size;
}

bool same_shape(const DLArray* a, const DLArray* b) {
  bool same = a->ndim == b->ndim;
  for (int i = 0; same && i < a->ndim; ++i) same = a->shape[i] == b->shape[i];
  return same;
}

ErrorText shape_of(const DLArray* arr) noexcept {
  std::string text = "(";
  for (int i = 0; i < arr->ndim; ++i)
    text += (i ? ", " : "") + std::to_string(arr->shape[i]) + (arr->ndim == 1 ? "," : "");
  return text + ")";
}

ErrorText cuda_error_text(cudaError_t error) noexcept {
  std::string text = cudaGetErrorString(error);
  text += " (CUDA error " + std::to_string(static_cast<int>(error)) + ")";
  const std::string more = dlsys_failure();
  if (!more.empty()) text += "\n" + more;
  return text;
}

int launched(const char* kernel) {
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return 0;
  return DLSetLastError((std::string(kernel) + ": " + cuda_error_text(error).c_str()).c_str(), -1);
}

int not_written(const char* task) {
  return DLSetLastError((std::string("task ") + task + " is not written yet").c_str(), -2);
}

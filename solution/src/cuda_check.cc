/*!
 * \file cuda_check.cc
 * \brief Texts of errors.
 */
#include "cuda_check.h"

#include <cstring>

static char* copy_of(const std::string& text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

ErrorText::ErrorText(const char* text) : text_(copy_of(text)) {}
ErrorText::ErrorText(const std::string& text) : text_(copy_of(text)) {}
ErrorText::ErrorText(const ErrorText& other) : text_(copy_of(other.text_)) {}
ErrorText::~ErrorText() { delete[] text_; }

ErrorText operator+(const ErrorText& first, const ErrorText& second) {
  return std::string(first.c_str()) + second.c_str();
}

ErrorText shape_of(const DLArray* arr) {
  std::string text = "(";
  for (int i = 0; i < arr->ndim; ++i)
    text += (i ? ", " : "") + std::to_string(arr->shape[i]) + (arr->ndim == 1 ? "," : "");
  return text + ")";
}

int launched(const char* kernel) {
  cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return 0;
  std::string message = std::string(kernel) + ": " + cudaGetErrorString(error) + " (CUDA error " +
                        std::to_string(static_cast<int>(error)) + ")";
  return DLSetLastError(message.c_str(), -1);
}

int not_written(const char* task) {
  return DLSetLastError((std::string("task ") + task + " is not written yet").c_str(), -2);
}

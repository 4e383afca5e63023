/*!
 * \file error.cc
 * \brief The error state, and the names of errors in NVIDIA's words.
 */
#include "error.h"

#include <atomic>
#include <cstdio>
#include <mutex>

namespace emulator {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
// Why there was one, as far as words can say more; used until the very end.
std::string& last_reason() {
  static thread_local std::string* text = new std::string;
  return *text;
}
std::atomic<cudaError_t> sticky(cudaSuccess);
std::atomic<bool> called(false);
std::mutex mutex;
std::string failure;  // why there is a sticky error

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};

const ErrorText kErrors[] = {
#define EMULATOR_ERROR(name, number, text) {name, #name, text},
    EMULATOR_ERRORS(EMULATOR_ERROR)
#undef EMULATOR_ERROR
};

const ErrorText* find(cudaError_t error) {
  for (const ErrorText& entry : kErrors)
    if (entry.error == error) return &entry;
  return nullptr;
}

}  // namespace

cudaError_t report(cudaError_t error, const std::string& why) {
  if (error == cudaSuccess) return error;
  last_error = error;
  last_reason() = why;
  // A GPU of another kind would have done these.
  if (error != cudaErrorNotSupported && error != cudaErrorUnsupportedLimit &&
      error != cudaErrorNotReady)
    EMULATOR_CHECK(call_failed(cudaGetErrorString(error)));
  return error;
}

cudaError_t replace_last_error(cudaError_t error) {
  cudaError_t before = last_error;
  last_error = error;
  return before;
}

bool runtime_was_called() { return called.load(std::memory_order_relaxed); }

// What every function of the runtime asks first.
cudaError_t sticky_error() {
  if (!runtime_was_called()) called = true;
  return sticky.load(std::memory_order_acquire);
}

bool set_sticky_error(cudaError_t error, const std::string& why) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (sticky != cudaSuccess) return false;
    failure = why;
    sticky = error;
  }
  std::fprintf(stderr, "%s\n", why.c_str());
  return true;
}

void clear_errors() {
  std::lock_guard<std::mutex> lock(mutex);
  failure.clear();
  sticky = cudaSuccess;
  last_error = cudaSuccess;
  last_reason().clear();
}

}  // namespace emulator

cudaError_t cudaPeekAtLastError() {
  EMULATOR_CHECK(error_read());
  EMULATOR_RETURN_IF_STICKY();
  return emulator::last_error;
}

cudaError_t cudaGetLastError() {
  cudaError_t error = cudaPeekAtLastError();
  emulator::last_error = cudaSuccess;
  return error;
}

const char* emulator_failure() {
  static thread_local std::string* text = new std::string;  // used until the very end
  std::lock_guard<std::mutex> lock(emulator::mutex);
  *text = emulator::failure.empty() ? emulator::last_reason() : emulator::failure;
  return text->c_str();
}

const char* cudaGetErrorString(cudaError_t error) {
  const emulator::ErrorText* entry = emulator::find(error);
  return entry ? entry->text : "unrecognized error code";
}

const char* cudaGetErrorName(cudaError_t error) {
  const emulator::ErrorText* entry = emulator::find(error);
  return entry ? entry->name : "unrecognized error code";
}

/*!
 * \file stream.cc
 * \brief Streams, which have nothing to wait for, and events, which keep the time.
 */
#include "stream.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>

#include "checked.h"
#include "error.h"
#include "protection.h"

struct CUstream_st {
  unsigned flags;
  int priority;
};

struct CUevent_st {
  bool timed, recorded;
  std::chrono::steady_clock::time_point when;
};

namespace emulator {
namespace {

const int kLeastPriority = 0, kGreatestPriority = -5;  // nobody waits for anybody here

std::mutex mutex;
std::set<cudaStream_t> streams;
std::set<cudaEvent_t> events;

bool is_event(cudaEvent_t event) {
  std::lock_guard<std::mutex> lock(mutex);
  return events.count(event) > 0;
}

template <typename Handle>
bool forget(std::set<Handle>* handles, Handle handle) {
  std::lock_guard<std::mutex> lock(mutex);
  if (handles->erase(handle) == 0) return false;
  delete handle;
  return true;
}

cudaError_t valid(bool handle) {
  EMULATOR_RETURN_IF_STICKY();
  return report(handle ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

bool is_created(cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(mutex);
  return streams.count(stream) > 0;
}

}  // namespace

bool is_stream(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return true;
  return is_created(stream);
}

}  // namespace emulator

using emulator::report;

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  EMULATOR_HOST_CALL();
  return cudaStreamCreateWithFlags(stream, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  EMULATOR_HOST_CALL();
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  EMULATOR_RETURN_IF_STICKY();
  if (stream == nullptr || flags > cudaStreamNonBlocking) return report(cudaErrorInvalidValue);
  std::lock_guard<std::mutex> lock(emulator::mutex);
  // A priority out of the range is the nearest one in it, as on a GPU.
  *stream = new CUstream_st{
      flags, std::max(emulator::kGreatestPriority, std::min(priority, emulator::kLeastPriority))};
  emulator::streams.insert(*stream);
  EMULATOR_CHECK(stream_created(*stream, flags != cudaStreamNonBlocking));
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_stream(stream));
  if (error != cudaSuccess) return error;
  if (flags == nullptr) return report(cudaErrorInvalidValue);
  *flags = emulator::is_created(stream) ? stream->flags : cudaStreamDefault;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_stream(stream));
  if (error != cudaSuccess) return error;
  if (priority == nullptr) return report(cudaErrorInvalidValue);
  *priority = emulator::is_created(stream) ? stream->priority : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  EMULATOR_RETURN_IF_STICKY();
  if (least != nullptr) *least = emulator::kLeastPriority;
  if (greatest != nullptr) *greatest = emulator::kGreatestPriority;
  return cudaSuccess;
}

// All that was launched before is done.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_stream(stream));
  if (error != cudaSuccess) return error;
  if (function == nullptr) return report(cudaErrorInvalidValue);
  EMULATOR_CHECK(HostFunction in_stream(stream));
  function(data);
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned flags) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_stream(stream));
  if (error != cudaSuccess) return error;
  if (callback == nullptr || flags != 0) return report(cudaErrorInvalidValue);
  EMULATOR_CHECK(HostFunction in_stream(stream));
  callback(stream, cudaSuccess, data);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  EMULATOR_HOST_CALL();
  return emulator::valid(emulator::forget(&emulator::streams, stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_stream(stream));
  if (error == cudaSuccess) EMULATOR_CHECK(host_waits_for_stream(stream));
  emulator::host_goes_on();
  return error;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  EMULATOR_HOST_CALL();
  return cudaStreamSynchronize(stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_stream(stream) && emulator::is_event(event));
  if (error == cudaSuccess) EMULATOR_CHECK(stream_waits_for_event(stream, event));
  return error;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  EMULATOR_HOST_CALL();
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  if (event == nullptr) return report(cudaErrorInvalidValue);
  std::lock_guard<std::mutex> lock(emulator::mutex);
  *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0, false, {}};
  emulator::events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_event(event) && emulator::is_stream(stream));
  if (error != cudaSuccess) return error;
  event->when = std::chrono::steady_clock::now();
  event->recorded = true;
  EMULATOR_CHECK(event_recorded(event, stream));
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  EMULATOR_HOST_CALL();
  if (flags > cudaEventRecordExternal) return report(cudaErrorInvalidValue);
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_event(event));
  if (error == cudaSuccess) EMULATOR_CHECK(host_waits_for_event(event));
  emulator::host_goes_on();
  return error;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  EMULATOR_HOST_CALL();
  return cudaEventSynchronize(event);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  EMULATOR_RETURN_IF_STICKY();
  if (milliseconds == nullptr) return report(cudaErrorInvalidValue);
  if (!emulator::is_event(start) || !emulator::is_event(end) || !start->timed || !end->timed ||
      !start->recorded || !end->recorded)
    return report(cudaErrorInvalidResourceHandle);
  EMULATOR_CHECK(host_waits_for_event(end));  // a device would say that it is not ready
  *milliseconds = std::chrono::duration<float, std::milli>(end->when - start->when).count();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  EMULATOR_HOST_CALL();
  EMULATOR_CHECK(event_forgotten(event));
  return emulator::valid(emulator::forget(&emulator::events, event));
}

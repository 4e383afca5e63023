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
#include "graph_nodes.h"
#include "graph_plan.h"
#include "pools.h"
#include "protection.h"

namespace emulator {
namespace {

const int kLeastPriority = 0, kGreatestPriority = -5;  // nobody waits for anybody here

std::mutex mutex;
std::set<cudaStream_t> streams;
std::set<cudaEvent_t> events;
std::vector<cudaStream_t> hidden;  // streams of graphs that are gone

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

cudaStream_t make_stream(unsigned flags, int priority) {
  std::lock_guard<std::mutex> lock(mutex);
  cudaStream_t stream = *streams.insert(new CUstream_st{flags, priority, {}}).first;
  EMULATOR_CHECK(stream_created(stream, flags != cudaStreamNonBlocking));
  return stream;
}

// A wait in a stream that captures, or for an event that was captured.
cudaError_t wait_in_capture(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
  const Captured& from = event->captured;
  const bool is_captured = from.capture != nullptr;
  if (!is_captured && !is_in_capture(stream))
    return is_legacy(stream) ? refuse_in_capture(stream) : cudaSuccess;
  if (is_captured && from.capture->is_ended) return cudaErrorCapturedEvent;
  if (is_legacy(stream)) return spoil(from.capture.get(), cudaErrorStreamCaptureImplicit);
  Captured& to = state_of(stream)->captured;
  Capture* const mine = to.capture.get();
  if (mine != nullptr && mine->is_spoilt) return cudaErrorStreamCaptureInvalidated;
  if (!is_captured) {
    if (flags != cudaEventWaitExternal) return spoil(mine, cudaErrorStreamCaptureIsolation);
    return submit_while_capturing(stream, work_of_wait(event), nullptr);
  }
  if (from.capture->is_spoilt) return cudaErrorStreamCaptureInvalidated;
  if (mine != nullptr && mine != from.capture.get()) {
    spoil(mine, cudaErrorStreamCaptureMerge);
    return spoil(from.capture.get(), cudaErrorStreamCaptureMerge);
  }
  to.capture = from.capture;
  to.capture->streams.insert(stream);
  for (cudaGraphNode_t node : from.last)
    if (std::find(to.last.begin(), to.last.end(), node) == to.last.end()) to.last.push_back(node);
  return cudaSuccess;
}

cudaError_t record(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (is_any_capture() || event->captured.capture != nullptr) {
    std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
    if (is_in_capture(stream)) {
      const Captured& captured = state_of(stream)->captured;
      if (captured.capture->is_spoilt) return cudaErrorStreamCaptureInvalidated;
      if (flags == cudaEventRecordExternal)
        return submit_while_capturing(stream, work_of_record(event), nullptr);
      event->captured = captured;
      event->recorded = false;
      return cudaSuccess;
    }
    if (is_any_capture() && is_legacy(stream)) {
      const cudaError_t error = refuse_in_capture(stream);
      if (error != cudaSuccess) return error;
    }
    event->captured = {};
  }
  if (flags == cudaEventRecordExternal) return cudaErrorIllegalState;
  return record_now(event, stream);
}

}  // namespace

bool is_legacy(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

bool is_stream(cudaStream_t stream) {
  return is_legacy(stream) || stream == cudaStreamPerThread || is_created(stream);
}

bool is_event(cudaEvent_t event) {
  std::lock_guard<std::mutex> lock(mutex);
  return events.count(event) > 0;
}

CUstream_st* state_of(cudaStream_t stream) {
  static thread_local auto* mine = new CUstream_st{cudaStreamDefault, 0, {}};
  return stream == cudaStreamPerThread ? mine : stream;
}

cudaStream_t take_hidden_stream() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!hidden.empty()) {
      const cudaStream_t stream = hidden.back();
      hidden.pop_back();
      return stream;
    }
  }
  return make_stream(cudaStreamNonBlocking, 0);
}

void leave_hidden_stream(cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(mutex);
  hidden.push_back(stream);
}

cudaError_t record_now(cudaEvent_t event, [[maybe_unused]] cudaStream_t stream) {
  event->when = std::chrono::steady_clock::now();
  event->recorded = true;
  EMULATOR_CHECK(event_recorded(event, stream));
  return cudaSuccess;
}

cudaError_t wait_now([[maybe_unused]] cudaEvent_t event, [[maybe_unused]] cudaStream_t stream) {
  EMULATOR_CHECK(stream_waits_for_event(stream, event));
  return cudaSuccess;
}

cudaError_t call_now([[maybe_unused]] cudaStream_t stream, cudaHostFn_t function, void* data) {
  EMULATOR_CHECK(HostFunction in_stream(stream));
  function(data);
  return cudaSuccess;
}

NodeWork work_of_record(cudaEvent_t event) {
  NodeWork work;
  work.type = cudaGraphNodeTypeEventRecord;
  work.label = "record an event";
  work.run = [event](cudaStream_t stream) {
    return is_event(event) ? record_now(event, stream) : cudaErrorInvalidResourceHandle;
  };
  return work;
}

NodeWork work_of_wait(cudaEvent_t event) {
  NodeWork work;
  work.type = cudaGraphNodeTypeWaitEvent;
  work.label = "wait for an event";
  work.run = [event](cudaStream_t stream) {
    return is_event(event) ? wait_now(event, stream) : cudaErrorInvalidResourceHandle;
  };
  return work;
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
  // A priority out of the range is the nearest one in it, as on a GPU.
  *stream = emulator::make_stream(
      flags, std::max(emulator::kGreatestPriority, std::min(priority, emulator::kLeastPriority)));
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
  if (!emulator::is_any_capture()) return emulator::call_now(stream, function, data);
  const emulator::NodeWork work = emulator::work_of_host(function, data);
  return report(emulator::submit_while_capturing(stream, work, work.run));
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned flags) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_stream(stream));
  if (error != cudaSuccess) return error;
  if (callback == nullptr || flags != 0) return report(cudaErrorInvalidValue);
  EMULATOR_RETURN_IF_REFUSED(emulator::refuse_in_capture(stream));
  EMULATOR_CHECK(HostFunction in_stream(stream));
  callback(stream, cudaSuccess, data);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  EMULATOR_HOST_CALL();
  if (emulator::is_created(stream)) EMULATOR_RETURN_IF_REFUSED(emulator::refuse_in_capture(stream));
  return emulator::valid(emulator::forget(&emulator::streams, stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_stream(stream));
  if (error == cudaSuccess) EMULATOR_RETURN_IF_REFUSED(emulator::refuse_in_capture(stream));
  if (error == cudaSuccess) EMULATOR_CHECK(host_waits_for_stream(stream));
  emulator::pools_release();
  emulator::host_goes_on();
  return error;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  EMULATOR_HOST_CALL();
  return cudaStreamSynchronize(stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_stream(stream) && emulator::is_event(event));
  if (error != cudaSuccess) return error;
  if (flags > cudaEventWaitExternal) return report(cudaErrorInvalidValue);
  if (emulator::is_in_capture(stream) || event->captured.capture != nullptr ||
      emulator::is_any_capture())
    error = emulator::wait_in_capture(stream, event, flags);
  if (error != cudaSuccess || emulator::is_in_capture(stream)) return report(error);
  if (flags == cudaEventWaitExternal) return report(cudaErrorInvalidValue);
  return report(emulator::wait_now(event, stream));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  EMULATOR_HOST_CALL();
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  if (event == nullptr) return report(cudaErrorInvalidValue);
  std::lock_guard<std::mutex> lock(emulator::mutex);
  *event = new CUevent_st{(flags & cudaEventDisableTiming) == 0, false, {}, {}};
  emulator::events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  EMULATOR_HOST_CALL();
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  EMULATOR_HOST_CALL();
  if (flags > cudaEventRecordExternal) return report(cudaErrorInvalidValue);
  cudaError_t error = emulator::valid(emulator::is_event(event) && emulator::is_stream(stream));
  return error != cudaSuccess ? error : report(emulator::record(event, stream, flags));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  EMULATOR_HOST_CALL();
  cudaError_t error = emulator::valid(emulator::is_event(event));
  if (error == cudaSuccess && (emulator::is_any_capture() || event->captured.capture != nullptr)) {
    error = emulator::refuse_captured(event->captured);
    if (error != cudaSuccess) return report(error);
  }
  if (error == cudaSuccess) EMULATOR_CHECK(host_waits_for_event(event));
  emulator::pools_release();
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
  if (emulator::is_event(start) && emulator::is_event(end) &&
      (start->captured.capture != nullptr || end->captured.capture != nullptr))
    return report(cudaErrorInvalidValue);
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

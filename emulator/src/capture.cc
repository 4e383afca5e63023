/*!
 * \file capture.cc
 * \brief The rules of capture, and the functions that begin and end it.
 */
#include "capture.h"

#include <algorithm>

#include "error.h"
#include "stream.h"

namespace emulator {

std::atomic<int> captures(0);

namespace {

typedef std::lock_guard<std::recursive_mutex> Lock;

// Used until the very end: the program's static objects may still call.
auto& all = *new std::set<std::shared_ptr<Capture>>;
unsigned long long last_id = 0;
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

bool is_blocking(cudaStream_t stream) {
  return stream != cudaStreamPerThread && state_of(stream)->flags != cudaStreamNonBlocking;
}

// Using the legacy stream has it wait for all streams that block.
cudaError_t refuse_legacy() {
  cudaError_t error = cudaSuccess;
  for (const auto& capture : all)
    if (std::any_of(capture->streams.begin(), capture->streams.end(), is_blocking))
      error = spoil(capture.get(), cudaErrorStreamCaptureImplicit);
  return error;
}

// Whether the rules of modes keep this thread from calls that may wait.
bool forbids(const Capture& capture) {
  if (capture.mode == cudaStreamCaptureModeRelaxed) return false;
  if (thread_mode == cudaStreamCaptureModeRelaxed) return false;
  if (capture.owner == std::this_thread::get_id()) return true;
  return capture.mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
}

void end(const std::shared_ptr<Capture>& capture) {
  for (cudaStream_t stream : capture->streams) state_of(stream)->captured = {};
  capture->is_ended = true;
  all.erase(capture);
  --captures;
}

// Whether all work of the other streams comes before what the first one has done.
bool is_joined(const Capture& capture) {
  const auto before = with_all_before(state_of(capture.origin)->captured.last);
  const std::set<cudaGraphNode_t> joined(before.begin(), before.end());
  for (cudaStream_t stream : capture.streams)
    for (cudaGraphNode_t node : state_of(stream)->captured.last)
      if (joined.count(node) == 0) return false;
  return true;
}

cudaError_t finish(const std::shared_ptr<Capture>& capture, cudaGraph_t* graph) {
  cudaError_t error = cudaSuccess;
  if (capture->is_spoilt)
    error = cudaErrorStreamCaptureInvalidated;
  else if (!is_joined(*capture))
    error = cudaErrorStreamCaptureUnjoined;
  end(capture);
  if (error == cudaSuccess) *graph = capture->graph;
  if (error != cudaSuccess && capture->owns_graph) destroy_graph(capture->graph);
  return error;
}

cudaError_t begin(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                  size_t count, cudaStreamCaptureMode mode) {
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed)
    return cudaErrorInvalidValue;
  if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
  if (is_legacy(stream)) return cudaErrorStreamCaptureUnsupported;
  Lock lock(graphs_mutex());
  Captured& captured = state_of(stream)->captured;
  if (captured.capture != nullptr) return cudaErrorIllegalState;
  if (graph != nullptr && !is_graph(graph)) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; ++i)
    if (!is_node(dependencies[i]) || dependencies[i]->graph != graph) return cudaErrorInvalidValue;
  auto capture = std::make_shared<Capture>();
  capture->id = ++last_id;
  capture->mode = mode;
  capture->owner = std::this_thread::get_id();
  capture->origin = stream;
  capture->owns_graph = graph == nullptr;
  capture->graph = graph == nullptr ? make_graph() : graph;
  capture->streams.insert(stream);
  captured.capture = capture;
  captured.last.assign(dependencies, dependencies + count);
  all.insert(capture);
  ++captures;
  return cudaSuccess;
}

// What is asked about a stream: its state, or null if there is nothing to tell.
cudaError_t find(cudaStream_t stream, Captured** captured) {
  *captured = nullptr;
  if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
  if (!is_legacy(stream)) {
    *captured = &state_of(stream)->captured;
    return cudaSuccess;
  }
  for (const auto& capture : all)  // to ask spoils nothing
    if (std::any_of(capture->streams.begin(), capture->streams.end(), is_blocking))
      return cudaErrorStreamCaptureImplicit;
  return cudaSuccess;
}

cudaStreamCaptureStatus status_of(const Captured* captured) {
  if (captured == nullptr || captured->capture == nullptr) return cudaStreamCaptureStatusNone;
  return captured->capture->is_spoilt ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
}

}  // namespace

bool is_in_capture(cudaStream_t stream) {
  if (!is_any_capture() || is_legacy(stream)) return false;
  Lock lock(graphs_mutex());
  return state_of(stream)->captured.capture != nullptr;
}

cudaError_t spoil(Capture* capture, cudaError_t error) {
  capture->is_spoilt = true;
  return error;
}

cudaError_t submit_while_capturing(cudaStream_t stream, NodeWork work,
                                   const std::function<cudaError_t(cudaStream_t)>& now) {
  {
    Lock lock(graphs_mutex());
    if (is_legacy(stream)) {
      const cudaError_t error = refuse_legacy();
      if (error != cudaSuccess) return error;
    } else if (state_of(stream)->captured.capture != nullptr) {
      Captured& captured = state_of(stream)->captured;
      if (captured.capture->is_spoilt) return cudaErrorStreamCaptureInvalidated;
      captured.last = {add_node(captured.capture->graph, captured.last.data(), captured.last.size(),
                                std::move(work))};
      return cudaSuccess;
    }
  }
  return now(stream);
}

cudaError_t refuse_in_capture(cudaStream_t stream) {
  Lock lock(graphs_mutex());
  if (is_legacy(stream)) return refuse_legacy();
  Capture* capture = state_of(stream)->captured.capture.get();
  if (capture == nullptr) return cudaSuccess;
  if (capture->is_spoilt) return cudaErrorStreamCaptureInvalidated;
  return spoil(capture, cudaErrorStreamCaptureUnsupported);
}

cudaError_t refuse_unsafe_call() {
  Lock lock(graphs_mutex());
  cudaError_t error = cudaSuccess;
  for (const auto& capture : all)
    if (forbids(*capture)) error = spoil(capture.get(), cudaErrorStreamCaptureUnsupported);
  return error;
}

cudaError_t refuse_wait_for_device() {
  Lock lock(graphs_mutex());
  cudaError_t error = cudaSuccess;
  for (const auto& capture : all) error = spoil(capture.get(), cudaErrorStreamCaptureUnsupported);
  return error;
}

cudaError_t refuse_captured(const Captured& event) {
  Lock lock(graphs_mutex());
  if (event.capture == nullptr) return refuse_unsafe_call();
  if (event.capture->is_ended) return cudaErrorInvalidValue;
  return spoil(event.capture.get(), cudaErrorCapturedEvent);
}

}  // namespace emulator

using emulator::report;
typedef std::lock_guard<std::recursive_mutex> Lock;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  EMULATOR_RETURN_IF_STICKY();
  return report(emulator::begin(stream, nullptr, nullptr, 0, mode));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData*, size_t count,
                                          cudaStreamCaptureMode mode) {
  EMULATOR_RETURN_IF_STICKY();
  if (graph == nullptr || (dependencies == nullptr && count > 0))
    return report(cudaErrorInvalidValue);
  return report(emulator::begin(stream, graph, dependencies, count, mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  EMULATOR_RETURN_IF_STICKY();
  if (graph == nullptr) return report(cudaErrorInvalidValue);
  *graph = nullptr;
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  if (emulator::is_legacy(stream)) return report(cudaErrorIllegalState);
  Lock lock(emulator::graphs_mutex());
  const std::shared_ptr<emulator::Capture> capture = emulator::state_of(stream)->captured.capture;
  if (capture == nullptr) return report(cudaErrorIllegalState);
  if (capture->origin != stream)
    return report(spoil(capture.get(), cudaErrorStreamCaptureUnmatched));
  if (capture->mode == cudaStreamCaptureModeRelaxed || capture->owner == std::this_thread::get_id())
    return report(emulator::finish(capture, graph));
  spoil(capture.get(), cudaErrorStreamCaptureWrongThread);  // the capture ends, without a graph
  emulator::finish(capture, graph);
  return report(cudaErrorStreamCaptureWrongThread);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  emulator::Captured* captured;
  if (status == nullptr) return report(cudaErrorInvalidValue);
  const cudaError_t error = emulator::find(stream, &captured);
  if (error == cudaSuccess) *status = emulator::status_of(captured);
  return report(error);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  emulator::Captured* captured;
  if (status == nullptr) return report(cudaErrorInvalidValue);
  const cudaError_t error = emulator::find(stream, &captured);
  if (error != cudaSuccess) return report(error);
  *status = emulator::status_of(captured);
  if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
  if (id != nullptr) *id = captured->capture->id;
  if (graph != nullptr) *graph = captured->capture->graph;
  if (dependencies != nullptr) *dependencies = captured->last.data();
  if (edges != nullptr) *edges = nullptr;  // plain ones
  if (count != nullptr) *count = captured->last.size();
  return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData*, size_t count,
                                                unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  if (flags > cudaStreamSetCaptureDependencies || (dependencies == nullptr && count > 0))
    return report(cudaErrorInvalidValue);
  Lock lock(emulator::graphs_mutex());
  if (!emulator::is_in_capture(stream)) return report(cudaErrorIllegalState);
  emulator::Captured& captured = emulator::state_of(stream)->captured;
  for (size_t i = 0; i < count; ++i)
    if (!emulator::is_node(dependencies[i]) || dependencies[i]->graph != captured.capture->graph)
      return report(cudaErrorInvalidValue);
  auto& last = captured.last;
  if (flags == cudaStreamSetCaptureDependencies) last.clear();
  for (size_t i = 0; i < count; ++i)
    if (std::find(last.begin(), last.end(), dependencies[i]) == last.end())
      last.push_back(dependencies[i]);
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  EMULATOR_RETURN_IF_STICKY();
  if (mode == nullptr || *mode < cudaStreamCaptureModeGlobal ||
      *mode > cudaStreamCaptureModeRelaxed)
    return report(cudaErrorInvalidValue);
  std::swap(*mode, emulator::thread_mode);
  return cudaSuccess;
}

/*!
 * \file capture.h
 * \brief Streams whose work becomes the nodes of a graph.
 *
 * Every function that puts work into a stream asks here first, by submit(); those that wait or may
 * wait ask whether a capture forbids it, and then spoil the capture, as CUDA does.
 */
#ifndef EMULATOR_CAPTURE_H_
#define EMULATOR_CAPTURE_H_

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "graph.h"

namespace emulator {

/*! \brief From cudaStreamBeginCapture to cudaStreamEndCapture. */
struct Capture {
  unsigned long long id;
  cudaStreamCaptureMode mode;
  std::thread::id owner;
  cudaStream_t origin;
  cudaGraph_t graph;
  bool owns_graph;
  bool is_spoilt = false, is_ended = false;
  std::set<cudaStream_t> streams;
};

/*! \brief What a stream or an event knows of the capture that it is in. */
struct Captured {
  std::shared_ptr<Capture> capture;   // or null
  std::vector<cudaGraphNode_t> last;  // what the next node waits for
};

extern std::atomic<int> captures;
/*! \brief Whether any stream captures. */
inline bool is_any_capture() { return captures.load(std::memory_order_relaxed) > 0; }
bool is_in_capture(cudaStream_t stream);

/*! \brief Does work of a stream: now, or as a node if the stream captures. */
cudaError_t submit_while_capturing(cudaStream_t stream, NodeWork work,
                                   const std::function<cudaError_t(cudaStream_t)>& now);
template <typename Run>
cudaError_t submit(cudaStream_t stream, cudaGraphNodeType type, const char* label, const Run& run) {
  if (!is_any_capture()) return run(stream);
  NodeWork work;
  work.type = type;
  work.label = label;
  work.run = run;
  return submit_while_capturing(stream, std::move(work), run);
}

/*! \brief Refuses what no graph can hold, if the stream captures; the default stream, if it would
 * wait for a stream that does. */
cudaError_t refuse_in_capture(cudaStream_t stream);
/*! \brief Refuses a call that may wait for a stream that captures. */
cudaError_t refuse_unsafe_call();
/*! \brief Refuses a call that waits for the device. */
cudaError_t refuse_wait_for_device();
/*! \brief Refuses to wait for an event that was captured, or to ask for it. */
cudaError_t refuse_captured(const Captured& event);
/*! \brief Has what is captured never become a graph; the error. */
cudaError_t spoil(Capture* capture, cudaError_t error);

}  // namespace emulator

// In functions that return a cudaError_t.
#define EMULATOR_RETURN_IF_REFUSED(...)                             \
  do {                                                              \
    if (!emulator::is_any_capture()) break;                         \
    const cudaError_t refused_ = (__VA_ARGS__);                     \
    if (refused_ != cudaSuccess) return emulator::report(refused_); \
  } while (0)

#endif  // EMULATOR_CAPTURE_H_

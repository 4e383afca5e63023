/*!
 * \file capture.cuh
 * \brief A program's launches as one CUDA graph: recorded once, started by one call.
 *
 * Steps that do not wait for one another go to streams of their own. A step waits for those of
 * other streams by their events, which become edges of the graph.
 */
#ifndef DLSYS_BACKEND_CAPTURE_CUH_
#define DLSYS_BACKEND_CAPTURE_CUH_

#include <cuda_runtime.h>

#include <vector>

#include "steps.h"

namespace dlsys {
namespace backend {

/*! \brief Streams and events of a recording; they end with it. */
class Lanes {
 public:
  Lanes(int64_t streams, int64_t events) : streams_(streams), events_(events) {
    for (cudaStream_t& each : streams_)
      good_ = cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking) == cudaSuccess && good_;
    for (cudaEvent_t& each : events_)
      good_ = cudaEventCreateWithFlags(&each, cudaEventDisableTiming) == cudaSuccess && good_;
  }
  ~Lanes() {
    for (cudaStream_t each : streams_)
      if (each != nullptr) cudaStreamDestroy(each);
    for (cudaEvent_t each : events_)
      if (each != nullptr) cudaEventDestroy(each);
  }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  bool good() const { return good_; }
  cudaStream_t stream(int64_t i) const { return streams_[i]; }
  cudaEvent_t event(int64_t i) const { return events_[i]; }

 private:
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  bool good_ = true;
};

/*!
 * \brief Launches steps on streams. Stream 0 begins, and waits for all others at the end.
 * \param stream_of the stream of each step.
 * \param waits pairs (step, another step that it waits for), by the first; `pairs` of them.
 * \return the number of the first step that failed, or that no capture can hold; count if the
 * streams failed, or -1.
 */
inline int64_t launch_on(const Lanes& lanes, const Step* steps, int64_t count, int64_t streams,
                         const int64_t* stream_of, const int64_t* waits, int64_t pairs) {
  const cudaEvent_t begun = lanes.event(count);
  bool good = cudaEventRecord(begun, lanes.stream(0)) == cudaSuccess;
  for (int64_t i = 1; i < streams; ++i)
    good = cudaStreamWaitEvent(lanes.stream(i), begun, 0) == cudaSuccess && good;
  for (int64_t i = 0, pair = 0; good && i < count; ++i) {
    const cudaStream_t own = lanes.stream(stream_of[i]);
    for (; pair < pairs && waits[2 * pair] == i; ++pair)
      good = cudaStreamWaitEvent(own, lanes.event(waits[2 * pair + 1]), 0) == cudaSuccess && good;
    if (!good || steps[i].kernel(steps[i].data, steps[i].n, steps[i].number, own) != 0 ||
        cudaEventRecord(lanes.event(i), own) != cudaSuccess)
      return good ? i : count;
  }
  for (int64_t i = 1; good && i < streams; ++i)
    good = cudaEventRecord(begun, lanes.stream(i)) == cudaSuccess &&
           cudaStreamWaitEvent(lanes.stream(0), begun, 0) == cudaSuccess;
  return good ? -1 : count;
}

/*!
 * \brief Records steps as a graph, which `made` gets.
 * \param spoilt gets whether a step did what no capture can hold: it allocated, or waited.
 * \return as launch_on.
 */
inline int64_t record(const Step* steps, int64_t count, int64_t streams, const int64_t* stream_of,
                      const int64_t* waits, int64_t pairs, int* spoilt, cudaGraphExec_t* made) {
  const Lanes lanes(streams, count + 1);
  if (!lanes.good() ||
      cudaStreamBeginCapture(lanes.stream(0), cudaStreamCaptureModeThreadLocal) != cudaSuccess)
    return count;
  int64_t failed = launch_on(lanes, steps, count, streams, stream_of, waits, pairs);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  *spoilt = cudaStreamIsCapturing(lanes.stream(0), &status) == cudaSuccess &&
            status == cudaStreamCaptureStatusInvalidated;
  cudaGraph_t graph = nullptr;
  // Ended in any case, so that the thread is not left capturing.
  if (cudaStreamEndCapture(lanes.stream(0), &graph) != cudaSuccess && failed < 0) failed = count;
  if (failed < 0 && cudaGraphInstantiate(made, graph, 0) != cudaSuccess) failed = count;
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (failed >= 0) cudaGetLastError();
  return failed;
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_CAPTURE_CUH_

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
  Lanes(int64_t streams, int64_t events, unsigned kind = cudaEventDisableTiming)
      : streams_(streams), events_(events) {
    for (cudaStream_t& each : streams_)
      good_ = cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking) == cudaSuccess && good_;
    for (cudaEvent_t& each : events_)
      good_ = cudaEventCreateWithFlags(&each, kind) == cudaSuccess && good_;
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
 * \param begun an event that is no step's.
 * \param stream_of the stream of each step.
 * \param waits pairs (step, another step that it waits for), by the first; `pairs` of them.
 * \param before the number of the event before the first step, if there is one before each; or 0.
 * \return the number of the first step that failed, or that no capture can hold; count if the
 * streams failed, or -1.
 */
inline int64_t launch_on(const Lanes& lanes, cudaEvent_t begun, const Step* steps, int64_t count,
                         int64_t streams, const int64_t* stream_of, const int64_t* waits,
                         int64_t pairs, int64_t before = 0) {
  bool good = cudaEventRecord(begun, lanes.stream(0)) == cudaSuccess;
  for (int64_t i = 1; i < streams; ++i)
    good = good && cudaStreamWaitEvent(lanes.stream(i), begun, 0) == cudaSuccess;
  for (int64_t i = 0, pair = 0; good && i < count; ++i) {
    const cudaStream_t own = lanes.stream(stream_of[i]);
    for (; pair < pairs && waits[2 * pair] == i; ++pair)
      good = good && cudaStreamWaitEvent(own, lanes.event(waits[2 * pair + 1]), 0) == cudaSuccess;
    if (before > 0) good = good && cudaEventRecord(lanes.event(before + i), own) == cudaSuccess;
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
 * \brief A capture under way. Stream 0 begins it, and waits for all others behind each launch.
 *
 * What is launched more than once is done in that order, one time after the other.
 */
class Recording {
 public:
  Recording(int64_t streams, int64_t most_steps)
      : lanes_(streams, most_steps + 1), streams_(streams), begun_(lanes_.event(most_steps)) {
    good_ = lanes_.good() && cudaStreamBeginCapture(
                                 lanes_.stream(0), cudaStreamCaptureModeThreadLocal) == cudaSuccess;
  }
  bool good() const { return good_; }

  /*! \brief Launches steps on the streams; arguments and result as those of launch_on. */
  int64_t launch(const Step* steps, int64_t count, const int64_t* stream_of, const int64_t* waits,
                 int64_t pairs) const {
    return launch_on(lanes_, begun_, steps, count, streams_, stream_of, waits, pairs);
  }

  /*! \brief Copies rows of `width` bytes, which start so many bytes apart, behind all that was
   * launched; whether that worked. */
  bool copy_rows(void* to, int64_t to_apart, const void* from, int64_t from_apart, int64_t width,
                 int64_t rows) const {
    return cudaMemcpy2DAsync(to, static_cast<size_t>(to_apart), from,
                             static_cast<size_t>(from_apart), static_cast<size_t>(width),
                             static_cast<size_t>(rows), cudaMemcpyDeviceToDevice,
                             lanes_.stream(0)) == cudaSuccess;
  }

  /*!
   * \brief Ends the capture.
   * \param spoilt gets whether a step did what no capture can hold: it allocated, or waited.
   * \return the graph to launch, or null.
   */
  cudaGraphExec_t end(int* spoilt) const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    *spoilt = cudaStreamIsCapturing(lanes_.stream(0), &status) == cudaSuccess &&
              status == cudaStreamCaptureStatusInvalidated;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    // Ended in any case, so that the thread is not left capturing.
    if (cudaStreamEndCapture(lanes_.stream(0), &graph) != cudaSuccess ||
        cudaGraphInstantiate(&made, graph, 0) != cudaSuccess) {
      made = nullptr;
      cudaGetLastError();
    }
    if (graph != nullptr) cudaGraphDestroy(graph);
    return made;
  }

 private:
  const Lanes lanes_;
  const int64_t streams_;
  const cudaEvent_t begun_;
  bool good_;
};

/*! \brief A recording that has begun; null if CUDA refuses. */
inline Recording* begin_recording(int64_t streams, int64_t most_steps) {
  Recording* const made = new Recording(streams, most_steps);
  if (made->good()) return made;
  delete made;
  cudaGetLastError();
  return nullptr;
}

/*! \brief Ends a recording; its graph, as Recording::end gives it. */
inline cudaGraphExec_t end_recording(Recording* recording, int* spoilt) {
  const cudaGraphExec_t made = recording->end(spoilt);
  delete recording;
  return made;
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_CAPTURE_CUH_

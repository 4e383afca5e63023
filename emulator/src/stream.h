/*!
 * \file stream.h
 * \brief Streams and events.
 */
#ifndef EMULATOR_STREAM_H_
#define EMULATOR_STREAM_H_

#include <chrono>

#include "capture.h"
#include "cuda_runtime_api.h"

namespace emulator {

/*! \brief Whether a stream was created and not destroyed, or is one that is always there. */
bool is_stream(cudaStream_t stream);
bool is_event(cudaEvent_t event);
/*! \brief Whether it is the stream that waits for all streams that block, and they for it. */
bool is_legacy(cudaStream_t stream);
/*! \brief What is behind a stream that is there; null for the legacy one. */
CUstream_st* state_of(cudaStream_t stream);

/*! \brief Records an event, or waits for one, in a stream that does not capture. */
cudaError_t record_now(cudaEvent_t event, cudaStream_t stream);
cudaError_t wait_now(cudaEvent_t event, cudaStream_t stream);
/*! \brief Calls a function of the host where the stream has come to. */
cudaError_t call_now(cudaStream_t stream, cudaHostFn_t function, void* data);

}  // namespace emulator

struct CUstream_st {
  unsigned flags;
  int priority;
  emulator::Captured captured;
};

struct CUevent_st {
  bool timed, recorded;
  std::chrono::steady_clock::time_point when;
  emulator::Captured captured;  // by its last record
};

#endif  // EMULATOR_STREAM_H_

/*!
 * \file timing.cuh
 * \brief A program under the clock of the GPU: events around each launch, on the streams that a
 * recording gives it.
 */
#ifndef DLSYS_BACKEND_TIMING_CUH_
#define DLSYS_BACKEND_TIMING_CUH_

#include "capture.cuh"

namespace dlsys {
namespace backend {

/*! \brief Cycles of the GPU in which the host makes one launch with its events; some 10 us. */
constexpr int64_t kCyclesOfALaunch = 20000;

/*! \brief Keeps a stream busy, so that launches queue up behind it and follow without gaps. */
__global__ void hold(int64_t cycles) {
  const int64_t start = clock64();
  while (clock64() - start < cycles) continue;
}

/*!
 * \brief Launches steps on streams, as a recording has them, and waits for their end.
 * \param spans gets begin and end of each step, in microseconds since the first might begin.
 * \return as launch_on.
 */
inline int64_t launch_timed(const Step* steps, int64_t count, int64_t streams,
                            const int64_t* stream_of, const int64_t* waits, int64_t pairs,
                            double* spans) {
  const Lanes lanes(streams, 2 * count + 2, cudaEventDefault);
  const cudaEvent_t origin = lanes.event(2 * count + 1);
  // The streams know nothing of the default one, where feeds are copied.
  if (!lanes.good() || cudaDeviceSynchronize() != cudaSuccess) return count;
#ifndef __CUDA_EMULATOR__  // where nothing queues
  hold<<<1, 1, 0, lanes.stream(0)>>>(count * kCyclesOfALaunch);
#endif
  if (cudaEventRecord(origin, lanes.stream(0)) != cudaSuccess) return count;
  const int64_t failed = launch_on(lanes, lanes.event(count), steps, count, streams, stream_of,
                                   waits, pairs, count + 1);
  if (cudaDeviceSynchronize() != cudaSuccess || failed >= 0) return failed < 0 ? count : failed;
  for (int64_t i = 0; i < count; ++i) {
    const cudaEvent_t ends[] = {lanes.event(count + 1 + i), lanes.event(i)};
    for (int side = 0; side < 2; ++side) {
      float milliseconds = 0;
      if (cudaEventElapsedTime(&milliseconds, origin, ends[side]) != cudaSuccess) return i;
      spans[2 * i + side] = 1e3 * milliseconds;
    }
  }
  return -1;
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_TIMING_CUH_

/*!
 * \file timing.h
 * \brief A program under the clock of the CPU: when each of its kernels begins and ends.
 */
#ifndef DLSYS_BACKEND_TIMING_H_
#define DLSYS_BACKEND_TIMING_H_

#include <chrono>

#include "steps.h"

namespace dlsys {
namespace backend {

/*!
 * \brief Executes steps in order.
 * \param spans gets begin and end of each, in microseconds since the first began.
 * \return as run.
 */
inline int64_t run_timed(const Step* steps, int64_t count, int64_t threads, double* spans) {
  typedef std::chrono::steady_clock Clock;
  const Clock::time_point start = Clock::now();
  const auto now = [=]() {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  };
  for (int64_t i = 0; i < count; ++i) {
    spans[2 * i] = now();
    if (run(steps + i, 1, threads, nullptr) >= 0) return i;
    spans[2 * i + 1] = now();
  }
  return -1;
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_TIMING_H_

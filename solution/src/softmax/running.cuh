/*!
 * \file running.cuh
 * \brief The largest value so far and its sum of exponentials, for rungs that find both together.
 */
#ifndef DLSYS_SOFTMAX_RUNNING_CUH_
#define DLSYS_SOFTMAX_RUNNING_CUH_

#include "../ladder/rung.h"

namespace ladder {

/*! \brief Of a part of a row. One that holds nothing has -inf and 0. */
struct Running {
  float largest, sum;

  /*! \brief Takes a value: the sum is corrected where it is the largest. */
  __device__ void take(float value) {
    if (value > largest) {
      sum *= expf(largest - value);
      largest = value;
    }
    sum += expf(value - largest);
  }

  /*! \brief Takes another part, which may hold nothing. */
  __device__ void join(const Running& other) {
    const float most = fmaxf(largest, other.largest);
    if (most == -INFINITY) return;
    sum = sum * expf(largest - most) + other.sum * expf(other.largest - most);
    largest = most;
  }
};

/*! \brief That of a whole warp, for all its lanes. */
__device__ inline Running running_of_warp(Running mine) {
  for (int step = kWarp / 2; step > 0; step /= 2)
    mine.join({__shfl_xor_sync(0xffffffff, mine.largest, step),
               __shfl_xor_sync(0xffffffff, mine.sum, step)});
  return mine;
}

}  // namespace ladder

#endif  // DLSYS_SOFTMAX_RUNNING_CUH_

/*!
 * \file harness.cuh
 * \brief Stands behind a rung in its library: gives it memory, and times it by events.
 */
#ifndef DLSYS_LADDER_HARNESS_CUH_
#define DLSYS_LADDER_HARNESS_CUH_

#include "rung.h"

namespace ladder {

/*! \brief Device memory for a call, freed at the end. */
struct Arrays {
  float *in = nullptr, *out = nullptr;

  Arrays(int64_t ins, int64_t outs) {
    cudaMalloc(&in, ins * sizeof(float));
    cudaMalloc(&out, outs * sizeof(float));
    cudaMemset(in, 0x3c, ins * sizeof(float));  // 0.0115
    cudaMemset(out, 0xff, outs * sizeof(float));
  }
  ~Arrays() {
    cudaFree(in);
    cudaFree(out);
  }
};

/*! \brief Milliseconds of a call, for each sample that of `calls` in a row. */
template <class Call>
int time_calls(Call call, int calls, int samples, float* milliseconds) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int i = 0; i <= samples; ++i) {  // the first one warms up
    cudaEventRecord(begin);
    for (int j = 0; j < calls; ++j) call();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float took = 0;
    cudaEventElapsedTime(&took, begin, end);
    if (i > 0) milliseconds[i - 1] = took / calls;
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return cudaGetLastError();
}

}  // namespace ladder

/*! \brief The output for an input, both in memory of the host. */
extern "C" int rung_values(const float* in, float* out, int64_t rows, int64_t columns,
                           int64_t outs) {
  const ladder::Arrays there(rows * columns, outs);
  cudaMemcpy(there.in, in, rows * columns * sizeof(float), cudaMemcpyHostToDevice);
  const int error = rung(there.in, there.out, rows, columns, nullptr);
  cudaMemcpy(out, there.out, outs * sizeof(float), cudaMemcpyDeviceToHost);
  return error != cudaSuccess ? error : cudaGetLastError();
}

extern "C" int rung_times(int64_t rows, int64_t columns, int64_t outs, int calls, int samples,
                          float* milliseconds) {
  const ladder::Arrays there(rows * columns, outs);
  const auto call = [&] { rung(there.in, there.out, rows, columns, nullptr); };
  return ladder::time_calls(call, calls, samples, milliseconds);
}

/*! \brief The same of a copy of so many floats. */
extern "C" int copy_times(int64_t count, int calls, int samples, float* milliseconds) {
  const ladder::Arrays there(count, count);
  const auto call = [&] {
    cudaMemcpyAsync(there.out, there.in, count * sizeof(float), cudaMemcpyDeviceToDevice);
  };
  return ladder::time_calls(call, calls, samples, milliseconds);
}

#endif  // DLSYS_LADDER_HARNESS_CUH_

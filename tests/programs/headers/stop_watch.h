// Time of the GPU between two points, by events.
#pragma once
#include <cuda_runtime.h>

struct StopWatch {
  cudaEvent_t begin, end;

  StopWatch() {
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
  }
  ~StopWatch() {
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }
  void start(cudaStream_t stream = 0) { cudaEventRecord(begin, stream); }
  float stop(cudaStream_t stream = 0) {
    float ms = -1;
    cudaEventRecord(end, stream);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&ms, begin, end);
    return ms;
  }
};

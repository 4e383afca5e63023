// Shows: events that time a kernel and copies; the bandwidth is computed and only judged.
#include <assert.h>
#include <stdio.h>
#include <vector>
#include "headers/stop_watch.h"
#include "headers/error_check.h"

__global__ void saxpy(int n, float a, float *x, float *y)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

int main(void)
{
  const int N = 20 * (1 << 10);
  std::vector<float> x(N, 1.0f), y(N, 2.0f);
  float *d_x, *d_y;
  checkCudaErrors(cudaMalloc(&d_x, N * sizeof(float)));
  checkCudaErrors(cudaMalloc(&d_y, N * sizeof(float)));

  StopWatch watch;
  watch.start();
  checkCudaErrors(cudaMemcpy(d_x, x.data(), N * sizeof(float), cudaMemcpyHostToDevice));
  checkCudaErrors(cudaMemcpy(d_y, y.data(), N * sizeof(float), cudaMemcpyHostToDevice));
  float copy_ms = watch.stop();

  cudaEvent_t start, stop;
  checkCudaErrors(cudaEventCreate(&start));
  checkCudaErrors(cudaEventCreateWithFlags(&stop, cudaEventBlockingSync));
  checkCudaErrors(cudaEventRecord(start));
  saxpy<<<(N + 511) / 512, 512>>>(N, 2.0f, d_x, d_y);
  getLastCudaError("saxpy");
  checkCudaErrors(cudaEventRecord(stop));
  checkCudaErrors(cudaEventSynchronize(stop));
  assert(cudaEventQuery(stop) == cudaSuccess);
  float milliseconds = -1;
  checkCudaErrors(cudaEventElapsedTime(&milliseconds, start, stop));
  checkCudaErrors(cudaMemcpy(y.data(), d_y, N * sizeof(float), cudaMemcpyDeviceToHost));

  float maxError = 0.0f;
  for (int i = 0; i < N; i++) {
    float error = y[i] - 4.0f;
    maxError = MAX(maxError, error);
    maxError = MAX(maxError, -error);
  }
  double bandwidth = milliseconds > 0 ? N * 4 * 3 / milliseconds / 1e6 : 0;
  bool sane = milliseconds >= 0 && copy_ms >= 0 && bandwidth >= 0;
  printf("Max error: %.1f\n", maxError);
  printf("Times are %s\n", sane ? "sane" : "wrong");

  checkCudaErrors(cudaEventDestroy(start));
  checkCudaErrors(cudaEventDestroy(stop));
  checkCudaErrors(cudaFree(d_x));
  checkCudaErrors(cudaFree(d_y));
  return !(sane && maxError == 0);
}

// Shows: softmax of rows, three passes with a block a row, and one pass with a warp a row.
#include <cuda_runtime.h>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "headers/error_check.h"

template <int THREADS>
__global__ void softmax_block(const float* __restrict__ in, float* __restrict__ out, int cols) {
  __shared__ float shared[THREADS];
  const float* x = in + blockIdx.x * cols;
  float* y = out + blockIdx.x * cols;

  float maxval = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += THREADS) maxval = fmaxf(maxval, x[i]);
  shared[threadIdx.x] = maxval;
  __syncthreads();
  for (int stride = THREADS / 2; stride >= 1; stride /= 2) {
    if (threadIdx.x < stride) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + stride]);
    __syncthreads();
  }
  const float offset = shared[0];
  __syncthreads();  // all have read it before it is overwritten

  float sumval = 0.0f;
  for (int i = threadIdx.x; i < cols; i += THREADS) {
    float e = expf(x[i] - offset);
    y[i] = e;
    sumval += e;
  }
  shared[threadIdx.x] = sumval;
  __syncthreads();
  for (int stride = THREADS / 2; stride >= 1; stride /= 2) {
    if (threadIdx.x < stride) shared[threadIdx.x] += shared[threadIdx.x + stride];
    __syncthreads();
  }
  const float sum = shared[0];
  for (int i = threadIdx.x; i < cols; i += THREADS) y[i] /= sum;
}

// The sum is corrected whenever the maximum grows.
__global__ void softmax_online(const float* in, float* out, int rows, int cols) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
  int lane = threadIdx.x % warpSize;
  if (row >= rows) return;
  const float* x = in + row * cols;
  float m = -FLT_MAX, d = 0.0f;
  for (int i = lane; i < cols; i += warpSize) {
    float bigger = fmaxf(m, x[i]);
    d = d * expf(m - bigger) + expf(x[i] - bigger);
    m = bigger;
  }
  for (int offset = warpSize / 2; offset > 0; offset >>= 1) {
    float otherM = __shfl_xor_sync(0xFFFFFFFF, m, offset);
    float otherD = __shfl_xor_sync(0xFFFFFFFF, d, offset);
    float bigger = fmaxf(m, otherM);
    d = d * expf(m - bigger) + otherD * expf(otherM - bigger);
    m = bigger;
  }
  for (int i = lane; i < cols; i += warpSize) out[row * cols + i] = expf(x[i] - m) / d;
}

static bool right(const std::vector<float>& x, const std::vector<float>& y, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    double m = -1e30, sum = 0;
    for (int c = 0; c < cols; ++c) m = std::fmax(m, x[r * cols + c]);
    for (int c = 0; c < cols; ++c) sum += std::exp(x[r * cols + c] - m);
    for (int c = 0; c < cols; ++c)
      if (!(std::fabs(y[r * cols + c] - std::exp(x[r * cols + c] - m) / sum) < 1e-6)) return false;
  }
  return true;
}

int main() {
  const int rows = 37, cols = 150;
  std::vector<float> x(rows * cols), y(rows * cols);
  for (int i = 0; i < rows * cols; ++i) x[i] = static_cast<float>((i * 29) % 61) * 3 - 90;
  float *d_x, *d_y;
  const size_t bytes = x.size() * sizeof(float);
  checkCudaErrors(cudaMalloc(&d_x, bytes));
  checkCudaErrors(cudaMalloc(&d_y, bytes));
  checkCudaErrors(cudaMemcpy(d_x, x.data(), bytes, cudaMemcpyHostToDevice));
  softmax_block<64><<<rows, 64>>>(d_x, d_y, cols);
  getLastCudaError("softmax_block");
  checkCudaErrors(cudaMemcpy(y.data(), d_y, bytes, cudaMemcpyDeviceToHost));
  bool block = right(x, y, rows, cols);
  checkCudaErrors(cudaMemset(d_y, 0, bytes));
  softmax_online<<<(rows * 32 + 127) / 128, 128>>>(d_x, d_y, rows, cols);
  getLastCudaError("softmax_online");
  checkCudaErrors(cudaMemcpy(y.data(), d_y, bytes, cudaMemcpyDeviceToHost));
  bool online = right(x, y, rows, cols);
  std::printf("softmax: block %s, online %s\n", block ? "OK" : "wrong", online ? "OK" : "wrong");
  checkCudaErrors(cudaFree(d_x));
  checkCudaErrors(cudaFree(d_y));
  return !(block && online);
}

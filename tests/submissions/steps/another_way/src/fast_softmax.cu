// A block of two warps for each row, whose values wait in shared memory where there is room.
#include "./c_runtime_api.h"
#include "./cuda_check.h"

const int kRoom = 4096, kThreads = 64;

// Of both warps; `largest` says which of the two is wanted.
__device__ static float of_block(float mine, bool largest, float* parts) {
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0u, mine, step);
    mine = largest ? fmaxf(mine, other) : mine + other;
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  return largest ? fmaxf(parts[0], parts[1]) : parts[0] + parts[1];
}

__global__ void softmax_kernel(int columns, const float* in, float* out) {
  __shared__ float row[kRoom], parts[4];
  const float* x = in + static_cast<int64_t>(blockIdx.x) * columns;
  float* y = out + static_cast<int64_t>(blockIdx.x) * columns;
  float kept[16], largest = -INFINITY, sum = 0;
  for (int i = 0; i < 16; ++i) {
    const int j = i * kThreads + threadIdx.x;
    kept[i] = j < columns ? x[j] : -INFINITY;
    largest = fmaxf(largest, kept[i]);
  }
  for (int j = 16 * kThreads + threadIdx.x; j < columns; j += kThreads) {
    const float value = x[j];
    if (j < kRoom) row[j] = value;
    largest = fmaxf(largest, value);
  }
  largest = of_block(largest, true, parts);
  for (int i = 0; i < 16; ++i) sum += kept[i] = expf(kept[i] - largest);
  for (int j = 16 * kThreads + threadIdx.x; j < columns; j += kThreads)
    sum += expf((j < kRoom ? row[j] : x[j]) - largest);
  sum = of_block(sum, false, parts + 2);
  for (int i = 0; i < 16; ++i)
    if (i * kThreads + threadIdx.x < columns) y[i * kThreads + threadIdx.x] = kept[i] / sum;
  for (int j = 16 * kThreads + threadIdx.x; j < columns; j += kThreads)
    y[j] = expf((j < kRoom ? row[j] : x[j]) - largest) / sum;
}

int DLGpuFastSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  softmax_kernel<<<static_cast<unsigned>(input->shape[0]), kThreads>>>(
      static_cast<int>(input->shape[1]), data_of(input), data_of(output));
  return launched("softmax");
}

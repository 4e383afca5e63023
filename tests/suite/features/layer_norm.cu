// feature: rows with mean 0 and variance 1, for values whose mean and variance are exact
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void layer_norm(const float* in, float* out, int columns) {
  __shared__ float sums[2];
  const float* row = in + blockIdx.x * columns;
  int t = threadIdx.x;
  float sum = 0, squares = 0;
  for (int i = t; i < columns; i += 32) sum += row[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  float mean = sum / columns;
  for (int i = t; i < columns; i += 32) squares += (row[i] - mean) * (row[i] - mean);
  for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(0xffffffff, squares, step);
  if (t == 0) {
    sums[0] = mean;
    sums[1] = sqrtf(squares / columns);
  }
  __syncwarp();
  for (int i = t; i < columns; i += 32)
    out[blockIdx.x * columns + i] = (row[i] - sums[0]) / sums[1];
}

int main() {
  const int rows = 4, columns = 64;
  std::vector<float> host(rows * columns);
  for (int i = 0; i < rows * columns; ++i) host[i] = i / columns + (i % 2 ? 1 : -1) * (i / 64 + 1);
  float *in, *out;
  check(cudaMalloc(&in, host.size() * sizeof(float)));
  check(cudaMalloc(&out, host.size() * sizeof(float)));
  check(cudaMemcpy(in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  layer_norm<<<rows, 32>>>(in, out, columns);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < rows * columns; i += 17) std::printf("%.9g\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

// feature: softmax of rows, a block each, for values whose exponentials are exact
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void softmax(const float* in, float* out, int columns) {
  __shared__ float part[64];
  const float* row = in + blockIdx.x * columns;
  int t = threadIdx.x;
  float largest = -INFINITY, sum = 0;
  for (int i = t; i < columns; i += 64) largest = fmaxf(largest, row[i]);
  part[t] = largest;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) part[t] = fmaxf(part[t], part[t + half]);
    __syncthreads();
  }
  largest = part[0];
  __syncthreads();
  for (int i = t; i < columns; i += 64) sum += expf(row[i] - largest);
  part[t] = sum;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  for (int i = t; i < columns; i += 64)
    out[blockIdx.x * columns + i] = expf(row[i] - largest) / part[0];
}

int main() {
  const int rows = 5, columns = 150;
  std::vector<float> host(rows * columns);
  // exp(0) is 1 and exp(-infinity) 0; there is nothing to round but the quotient.
  for (int i = 0; i < rows * columns; ++i)
    host[i] = i % (i / columns + 2) == 0 ? i / columns + 0.5f : -INFINITY;
  float *in, *out;
  check(cudaMalloc(&in, host.size() * sizeof(float)));
  check(cudaMalloc(&out, host.size() * sizeof(float)));
  check(cudaMemcpy(in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  softmax<<<rows, 64>>>(in, out, columns);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < rows * columns; i += 12) std::printf("%a\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

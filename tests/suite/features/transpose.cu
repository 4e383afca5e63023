// feature: a transposition through padded tiles, of a matrix that no tile divides
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void transpose(const float* in, float* out, int width, int height) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main() {
  const int width = 70, height = 45, n = width * height;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  check(cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  transpose<<<dim3(3, 2), dim3(32, 8)>>>(in, out, width, height);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 271) std::printf("%.9g\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

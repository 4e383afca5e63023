// Shows: copies by vectors of 2 and 4, with the rest by one thread, and vectors as arguments.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK_CUDA(call)                                          \
  if ((call) != cudaSuccess) {                                    \
    fprintf(stderr, "CUDA error in line %d\n", __LINE__);         \
    exit(1);                                                      \
  }

__global__ void device_copy_scalar_kernel(int *d_in, int *d_out, int N) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = idx; i < N; i += blockDim.x * gridDim.x) {
    d_out[i] = d_in[i];
  }
}

__global__ void device_copy_vector2_kernel(int *d_in, int *d_out, int N) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = idx; i < N / 2; i += blockDim.x * gridDim.x) {
    reinterpret_cast<int2 *>(d_out)[i] = reinterpret_cast<int2 *>(d_in)[i];
  }
  // in only one thread, process final element (if there is one)
  if (idx == N / 2 && N % 2 == 1) d_out[N - 1] = d_in[N - 1];
}

__global__ void device_copy_vector4_kernel(int *d_in, int *d_out, int N) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = idx; i < N / 4; i += blockDim.x * gridDim.x) {
    reinterpret_cast<int4 *>(d_out)[i] = reinterpret_cast<int4 *>(d_in)[i];
  }
  int remainder = N % 4;
  if (idx < remainder) d_out[N - 1 - idx] = d_in[N - 1 - idx];
}

__device__ inline float4 operator*(float4 a, float s) { return make_float4(a.x * s, a.y * s, a.z * s, a.w * s); }
__device__ inline float4 operator+(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void axpb4(const float4 *__restrict__ x, float4 *__restrict__ y, float a, float4 b, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n4) y[i] = __ldg(&x[i]) * a + b;
}

int main() {
  const int N = 4099;
  int *h_in = (int *)malloc(N * sizeof(int)), *h_out = (int *)malloc(N * sizeof(int)), *d_in, *d_out;
  for (int i = 0; i < N; i++) h_in[i] = i * 17 + 3;
  CHECK_CUDA(cudaMalloc(&d_in, N * sizeof(int)));
  CHECK_CUDA(cudaMalloc(&d_out, N * sizeof(int)));
  CHECK_CUDA(cudaMemcpy(d_in, h_in, N * sizeof(int), cudaMemcpyHostToDevice));
  int failures = 0;
  for (int width = 1; width <= 4; width *= 2) {
    const int threads = 128, blocks = (N / width + threads) / threads;
    CHECK_CUDA(cudaMemset(d_out, 0, N * sizeof(int)));
    if (width == 1) device_copy_scalar_kernel<<<blocks, threads>>>(d_in, d_out, N);
    if (width == 2) device_copy_vector2_kernel<<<blocks, threads>>>(d_in, d_out, N);
    if (width == 4) device_copy_vector4_kernel<<<blocks, threads>>>(d_in, d_out, N);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpy(h_out, d_out, N * sizeof(int), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < N; i++) wrong += h_out[i] != h_in[i];
    printf("vectors of %d: %d wrong\n", width, wrong);
    failures += wrong;
  }
  const int n4 = 300;
  float x[4 * n4], *d_x;
  for (int i = 0; i < 4 * n4; i++) x[i] = (float)i;
  CHECK_CUDA(cudaMalloc(&d_x, 2 * sizeof(x)));
  CHECK_CUDA(cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice));
  axpb4<<<(n4 + 63) / 64, 64>>>((float4 *)d_x, (float4 *)(d_x + 4 * n4), 2.0f, make_float4(1, 2, 3, 4), n4);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpy(x, d_x + 4 * n4, sizeof(x), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4 * n4; i++) failures += x[i] != 2.0f * i + i % 4 + 1;
  printf("axpb4: %s\n", failures ? "wrong" : "right");
  CHECK_CUDA(cudaFree(d_in));
  CHECK_CUDA(cudaFree(d_out));
  CHECK_CUDA(cudaFree(d_x));
  free(h_in);
  free(h_out);
  return failures != 0;
}

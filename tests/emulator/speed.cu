// Kernels as students write them, timed against numpy by speed.py.
#include <cublas_v2.h>
#include <cuda_runtime.h>

__global__ void add(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

__global__ void relu_gradient(const float* in, const float* grad, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] > 0 ? grad[i] : 0;
}

__global__ void matmul_naive(const float* A, const float* B, float* C, int M, int N, int K) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < M && col < N) {
    float sum = 0.0f;
    for (int k = 0; k < K; k++) {
      sum += A[row * K + k] * B[k * N + col];
    }
    C[row * N + col] = sum;
  }
}

// An element a thread in a grid of one dimension.
__global__ void matmul_flat(const float* A, const float* B, float* C, int M, int N, int K) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= M * N) return;
  int row = i / N, col = i % N;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
  C[i] = sum;
}

#define TILE 16

__global__ void matmul_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float As[TILE][TILE];
  __shared__ float Bs[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty;
  int col = blockIdx.x * TILE + tx;
  float sum = 0;
  for (int t = 0; t < (K + TILE - 1) / TILE; t++) {
    if (row < M && t * TILE + tx < K)
      As[ty][tx] = A[row * K + t * TILE + tx];
    else
      As[ty][tx] = 0;
    if (t * TILE + ty < K && col < N)
      Bs[ty][tx] = B[(t * TILE + ty) * N + col];
    else
      Bs[ty][tx] = 0;
    __syncthreads();
    for (int k = 0; k < TILE; k++) {
      sum += As[ty][k] * Bs[k][tx];
    }
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = sum;
}

__global__ void softmax_block(const float* in, float* out, int columns) {
  __shared__ float cache[256];
  int tid = threadIdx.x;
  const float* x = in + blockIdx.x * columns;
  float* y = out + blockIdx.x * columns;
  float largest = -INFINITY;
  for (int j = tid; j < columns; j += blockDim.x) largest = fmaxf(largest, x[j]);
  cache[tid] = largest;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) cache[tid] = fmaxf(cache[tid], cache[tid + s]);
    __syncthreads();
  }
  largest = cache[0];
  __syncthreads();
  float sum = 0;
  for (int j = tid; j < columns; j += blockDim.x) {
    float e = expf(x[j] - largest);
    y[j] = e;
    sum += e;
  }
  cache[tid] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) cache[tid] += cache[tid + s];
    __syncthreads();
  }
  sum = cache[0];
  for (int j = tid; j < columns; j += blockDim.x) y[j] /= sum;
}

extern "C" {
void run_add(const float* a, const float* b, float* out, int n) {
  add<<<(n + 255) / 256, 256>>>(a, b, out, n);
}
void run_relu_gradient(const float* in, const float* grad, float* out, int n) {
  relu_gradient<<<(n + 255) / 256, 256>>>(in, grad, out, n);
}
void run_matmul_naive(const float* A, const float* B, float* C, int M, int N, int K) {
  matmul_naive<<<dim3((N + 15) / 16, (M + 15) / 16), dim3(16, 16)>>>(A, B, C, M, N, K);
}
void run_matmul_flat(const float* A, const float* B, float* C, int M, int N, int K) {
  matmul_flat<<<(M * N + 255) / 256, 256>>>(A, B, C, M, N, K);
}
void run_matmul_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
  matmul_tiled<<<dim3((N + 15) / 16, (M + 15) / 16), dim3(16, 16)>>>(A, B, C, M, N, K);
}
void run_softmax(const float* in, float* out, int rows, int columns) {
  softmax_block<<<rows, 256>>>(in, out, columns);
}
}

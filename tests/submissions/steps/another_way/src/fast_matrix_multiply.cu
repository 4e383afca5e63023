// 8 x 8 elements a thread, 64 threads a block, whose tile is 64 x 64.
#include "./c_runtime_api.h"
#include "./cuda_check.h"

__device__ static void take(float (&into)[8], const float* row, int at) {
  for (int half = 0; half < 2; ++half) {
    const float4 four = *reinterpret_cast<const float4*>(row + half * 32 + at * 4);
    into[half * 4] = four.x;
    into[half * 4 + 1] = four.y;
    into[half * 4 + 2] = four.z;
    into[half * 4 + 3] = four.w;
  }
}

__global__ __launch_bounds__(64) void multiply_kernel(int M, int N, int K, const float* A,
                                                      const float* B, float* C) {
  __shared__ __align__(16) float a[8][68], b[8][64];
  const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
  const int down = threadIdx.x / 8, right = threadIdx.x % 8;
  float sum[8][8] = {};
  for (int k0 = 0; k0 < K; k0 += 8) {
    for (int i = threadIdx.x; i < 512; i += 64) {
      const int m = row0 + i / 8, k = k0 + i % 8, n = column0 + i % 64, l = k0 + i / 64;
      a[i % 8][i / 8] = m < M && k < K ? A[static_cast<int64_t>(m) * K + k] : 0;
      b[i / 64][i % 64] = l < K && n < N ? B[static_cast<int64_t>(l) * N + n] : 0;
    }
    __syncthreads();
    for (int k = 0; k < 8; ++k) {
      float x[8], y[8];
      take(x, a[k], down);
      take(y, b[k], right);
      for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      const int m = row0 + i / 4 * 32 + down * 4 + i % 4;
      const int n = column0 + j / 4 * 32 + right * 4 + j % 4;
      if (m < M && n < N) C[static_cast<int64_t>(m) * N + n] = sum[i][j];
    }
}

int DLGpuFastMatrixMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                            DLArrayHandle matC) {
  const int M = static_cast<int>(matC->shape[0]), N = static_cast<int>(matC->shape[1]);
  const int K = static_cast<int>(matA->shape[1]);
  multiply_kernel<<<dim3((N + 63) / 64, (M + 63) / 64), 64>>>(M, N, K, data_of(matA),
                                                              data_of(matB), data_of(matC));
  return launched("multiply");
}

/*!
 * \file fast_matrix_multiply.cu
 * \brief Task 3.5: a product whose threads keep a small tile of it in registers.
 */
#include "./c_runtime_api.h"
#include "./cuda_check.h"

// BEGIN SOLUTION 3.5
// C[m, n] = sum over k of A[m, k] * B[k, n]
// in: A, B, row by row. out: M x N.
// grid: 1-D, a block of 16 x 16 threads for a tile of 64 x 64; each thread has 4 x 4 of it.
// cost: 2MNK operations, 8 * MNK / 64 bytes from memory. For each k a thread reads 8 floats from
// shared memory, four at a time, for 16 multiplications: 3 turns of the banks a warp, where one
// element a thread takes 2 turns for each of them.
// next: src/gemm/ has 8 x 8 a thread, copies that do not wait, and tiles for warps.
static const int kTile = 64, kDepth = 16, kOf = 4;
static const int kSide = kTile / kOf, kThreads = kSide * kSide;

// Copies a slice of both operands, zeros where they end. A is turned, so that four of its rows lie
// side by side, as four columns of B do; 4 floats more in a row keep the turned stores apart.
__device__ static void load_slice(float (*a_slice)[kTile + 4], float (*b_slice)[kTile], int64_t M,
                                  int64_t N, int64_t K, const float* A, const float* B,
                                  int64_t row0, int64_t column0, int64_t k0) {
  for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
    const int64_t m = row0 + i / kDepth, k_of_a = k0 + i % kDepth;
    a_slice[i % kDepth][i / kDepth] = m < M && k_of_a < K ? A[m * K + k_of_a] : 0;
    const int64_t k_of_b = k0 + i / kTile, n = column0 + i % kTile;
    b_slice[i / kTile][i % kTile] = k_of_b < K && n < N ? B[k_of_b * N + n] : 0;
  }
}

// Four in a row of C, at once where they lie as one vector.
__device__ static void store_four(float* to, const float* four, int64_t count, bool is_aligned) {
  if (is_aligned && count >= kOf) {
    *reinterpret_cast<float4*>(to) = make_float4(four[0], four[1], four[2], four[3]);
    return;
  }
  for (int j = 0; j < kOf && j < count; ++j) to[j] = four[j];
}

__global__ void fast_matrix_multiply_kernel(int64_t M, int64_t N, int64_t K, const float* A,
                                            const float* B, float* C, bool is_aligned) {
  __shared__ __align__(16) float a_slice[kDepth][kTile + 4], b_slice[kDepth][kTile];
  const int64_t tiles_n = (N + kTile - 1) / kTile;
  const int64_t row0 = blockIdx.x / tiles_n * kTile, column0 = blockIdx.x % tiles_n * kTile;
  const int row = threadIdx.x / kSide * kOf, column = threadIdx.x % kSide * kOf;
  float sum[kOf][kOf] = {};
  for (int64_t k0 = 0; k0 < K; k0 += kDepth) {
    load_slice(a_slice, b_slice, M, N, K, A, B, row0, column0, k0);
    __syncthreads();  // the slices are complete
    for (int k = 0; k < kDepth; ++k) {
      const float4 a = *reinterpret_cast<const float4*>(&a_slice[k][row]);
      const float4 b = *reinterpret_cast<const float4*>(&b_slice[k][column]);
      const float x[kOf] = {a.x, a.y, a.z, a.w}, y[kOf] = {b.x, b.y, b.z, b.w};
      for (int i = 0; i < kOf; ++i)
        for (int j = 0; j < kOf; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();  // nobody reads them any more
  }
  for (int i = 0; i < kOf && row0 + row + i < M; ++i)
    store_four(C + (row0 + row + i) * N + column0 + column, sum[i], N - column0 - column,
               is_aligned);
}

// END SOLUTION
int DLGpuFastMatrixMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                            DLArrayHandle matC) {
  REQUIRE(matA->ndim == 2 && matB->ndim == 2 && matC->ndim == 2 &&
              matA->shape[1] == matB->shape[0] && matC->shape[0] == matA->shape[0] &&
              matC->shape[1] == matB->shape[1],
          "fast_matrix_multiply: A is " + shape_of(matA) + ", B is " + shape_of(matB) + ", C is " +
              shape_of(matC));
  // BEGIN SOLUTION 3.5
  const int64_t M = matC->shape[0], N = matC->shape[1], K = matA->shape[1];
  if (M * N == 0) return 0;
  const int64_t tiles = static_cast<int64_t>(blocks_for(M, kTile)) * blocks_for(N, kTile);
  const bool is_aligned = N % 4 == 0 && reinterpret_cast<uintptr_t>(data_of(matC)) % 16 == 0;
  fast_matrix_multiply_kernel<<<blocks_for(tiles, 1), kThreads>>>(
      M, N, K, data_of(matA), data_of(matB), data_of(matC), is_aligned);
  return launched("fast_matrix_multiply");
  // END SOLUTION
}

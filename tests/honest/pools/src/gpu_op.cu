/*!
 * \file gpu_op.cu
 * \brief The kernels of the executor, and the functions that launch them.
 *
 * Arrays are float32, dense and row-major. A launcher checks shapes, launches on the default
 * stream and returns at once; `launched` says whether the launch was accepted. An array of no
 * elements needs no launch: a grid of 0 blocks is an error.
 */
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "./c_runtime_api.h"
#include "./cuda_check.h"

// One thread an element, in blocks of this many: a multiple of the warp's 32 threads, and small
// enough that several blocks share a multiprocessor.
static const int kThreads = 256;

// The element of a thread in a grid of one thread an element. 64 bits: an array may have more
// than 2^31 elements.
[[maybe_unused]] __device__ static int64_t element_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// An element-wise kernel of any function, by a loop over the grid's strides.
template <int N, typename F, typename... In>
__global__ void __launch_bounds__(N)
    map_kernel(int64_t n, F f, float* __restrict__ out, const In*... in) {
  for (int64_t i = blockIdx.x * int64_t{N} + threadIdx.x; i < n; i += int64_t{gridDim.x} * N)
    out[i] = f(__ldg(in + i)...);
}
template <typename F, typename... In>
static int map(const char* name, int64_t n, F f, float* out, const In*... in) {
  if (n == 0) return 0;
  constexpr int threads = 192;
  int blocks = static_cast<int>(std::min<int64_t>((n + threads - 1) / threads, 160));
  map_kernel<threads><<<blocks, threads>>>(n, f, out, in...);
  return launched(name);
}
struct Gate {
  __device__ float operator()(float x, float g) const { return g * (x > 0); }
};
// array_set
// out[i] = value
// in: nothing. out: n floats. grid: 1-D, a thread an element.
// cost: 4n bytes written. next: nothing; writing is all there is to do.
__global__ void array_set_kernel(int64_t n, float value, float* out) {
  int64_t i = element_index();
  if (i < n) out[i] = value;  // the last block may reach past the end
}
int DLGpuArraySet(DLArrayHandle arr, float value) {
  int64_t n = size_of(arr);
  if (n == 0) return 0;
  array_set_kernel<<<blocks_for(n, kThreads), kThreads>>>(n, value, data_of(arr));
  return launched("array_set");
}

// ---------------------------------------------------------------------------------------------
// broadcast_to
// out[k, i] = in[i]
// in: size floats. out: n = copies * size floats. grid: 1-D, a thread an element of out.
// cost: 4n bytes written; the input is read from the cache.
// next: a 2-D grid would save the division, but memory is the limit, not arithmetic.
__global__ void broadcast_to_kernel(int64_t n, int64_t size, const float* in, float* out) {
  int64_t i = element_index();
  if (i < n) out[i] = in[i % size];
}
int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");

  int64_t size = size_of(input), n = size_of(output);
  if (n == 0) return 0;
  if (cudaMemcpyAsync(data_of(output), data_of(input), size * 4, cudaMemcpyDeviceToDevice, 0) !=
      cudaSuccess)
    return launched("broadcast_to");
  for (int64_t done = size; done < n; done *= 2)
    cudaMemcpyAsync(data_of(output) + done, data_of(output), std::min(done, n - done) * 4,
                    cudaMemcpyDeviceToDevice, 0);
  return launched("broadcast_to");
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero
// Version 1: out[j] = sum over i of in[i, j]
// in: rows x columns. out: columns floats. grid: 1-D, a thread a column.
// cost: 4 * rows * columns bytes read, neighbouring threads from neighbouring addresses.
// next: with few columns most of the GPU idles. Version 2 splits the rows too.
__global__ void reduce_sum_axis_zero_kernel_v1(int64_t rows, int64_t columns, const float* in,
                                               float* out) {
  int64_t j = element_index();
  if (j >= columns) return;
  float sum = 0;
  for (int64_t i = 0; i < rows; ++i) sum += in[i * columns + j];
  out[j] = sum;
}

static const int kSumColumns = 32;  // a warp's width: a row of the block reads 128 bytes at once
static const int kSumRows = 8;

// Version 2: each of kSumRows threads sums every kSumRows-th row of a column; shared memory
// brings their sums together.
// in: rows x columns. out: columns floats. grid: 1-D, a block of 32 x 8 threads for 32 columns.
// cost: 4 * rows * columns bytes read.
// next: with one column there is still only one block; a second pass over partial sums helps.
__global__ void reduce_sum_axis_zero_kernel(int64_t rows, int64_t columns, const float* in,
                                            float* out) {
  __shared__ float partial[kSumRows][kSumColumns];
  int64_t j = static_cast<int64_t>(blockIdx.x) * kSumColumns + threadIdx.x;
  float sum = 0;
  if (j < columns)
    for (int64_t i = threadIdx.y; i < rows; i += kSumRows) sum += in[i * columns + j];
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();  // outside the if: every thread of the block must get here
  if (threadIdx.y == 0 && j < columns) {
    for (int r = 1; r < kSumRows; ++r) sum += partial[r][threadIdx.x];
    out[j] = sum;
  }
}

__global__ void partial_sums(int64_t rows, int64_t columns, const float* in, float* out) {
  int64_t j = blockIdx.x * 128ll + threadIdx.x;
  if (j >= columns) return;
  float s = 0;
  for (int64_t i = blockIdx.y; i < rows; i += gridDim.y) s += in[i * columns + j];
  out[blockIdx.y * columns + j] = s;
}
extern "C" int DLGpuReduceSumAxisZeroV1(const DLArrayHandle input, DLArrayHandle output) {
  int64_t columns = size_of(output), rows = input->shape[0];
  if (columns == 0) return 0;
  reduce_sum_axis_zero_kernel_v1<<<blocks_for(columns, kThreads), kThreads>>>(
      rows, columns, data_of(input), data_of(output));
  return launched("reduce_sum_axis_zero, version 1");
}
int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));

  if (columns == 0) return 0;
  constexpr int parts = 8;
  float* scratch = nullptr;
  if (cudaMallocAsync(&scratch, parts * columns * sizeof(float), 0) != cudaSuccess)
    return launched("reduce_sum_axis_zero");
  partial_sums<<<dim3(blocks_for(columns, 128), parts), 128>>>(rows, columns, data_of(input),
                                                               scratch);
  partial_sums<<<dim3(blocks_for(columns, 128), 1), 128>>>(parts, columns, scratch,
                                                           data_of(output));
  cudaFreeAsync(scratch, 0);
  return launched("reduce_sum_axis_zero");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant
// out[i] = a[i] + b[i]
// in: two times n floats. out: n floats, may be a or b, since a thread reads only what it
// writes. grid: 1-D, a thread an element. cost: 12n bytes. next: float4 loads, in part 3.
__global__ void elementwise_add_kernel(int64_t n, const float* a, const float* b, float* out) {
  int64_t i = element_index();
  if (i < n) out[i] = a[i] + b[i];
}
int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  return map(
      "matrix_elementwise_add", size_of(output), [] __device__(float a, float b) { return a + b; },
      data_of(output), data_of(matA), data_of(matB));
}
// out[i] = in[i] + value
// in: n floats. out: n floats, may be in. grid: 1-D, a thread an element. cost: 8n bytes.
// next: float4 loads, in part 3.
__global__ void add_by_const_kernel(int64_t n, const float* in, float value, float* out) {
  int64_t i = element_index();
  if (i < n) out[i] = in[i] + value;
}
int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  return map(
      "matrix_elementwise_add_by_const", size_of(output),
      [=] __device__(float a) { return a + val; }, data_of(output), data_of(input));
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant
// out[i] = a[i] * b[i]
// in: two times n floats. out: n floats, may be a or b. grid: 1-D, a thread an element.
// cost: 12n bytes. next: float4 loads, in part 3.
__global__ void elementwise_multiply_kernel(int64_t n, const float* a, const float* b, float* out) {
  int64_t i = element_index();
  if (i < n) out[i] = a[i] * b[i];
}
int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  int64_t n = size_of(output);
  if (n == 0) return 0;
  elementwise_multiply_kernel<<<blocks_for(n, kThreads), kThreads>>>(
      n, data_of(matA), data_of(matB), data_of(output));
  return launched("matrix_elementwise_multiply");
}
// out[i] = in[i] * value
// in: n floats. out: n floats, may be in. grid: 1-D, a thread an element. cost: 8n bytes.
// next: float4 loads, in part 3.
__global__ void multiply_by_const_kernel(int64_t n, const float* in, float value, float* out) {
  int64_t i = element_index();
  if (i < n) out[i] = in[i] * value;
}
int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  return map(
      "matrix_elementwise_multiply_by_const", size_of(output),
      [=] __host__ __device__(float a) { return a * val; }, data_of(output), data_of(input));
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply
// Version 1: C[m, n] = sum over k of op(A)[m, k] * op(B)[k, n]
// in: A and B; element (i, j) of op(A) lies at i * a_row + j * a_column, so that a transposed
// matrix is the same memory with the strides swapped. out: M x N.
// grid: 1-D, a thread an element of C. cost: 2MNK operations, and 8 bytes read for every two.
// next: every element of A is read N times from memory. Version 2 reads it N / 32 times.
__global__ void matrix_multiply_kernel_v1(int64_t M, int64_t N, int64_t K, const float* A,
                                          int64_t a_row, int64_t a_column, const float* B,
                                          int64_t b_row, int64_t b_column, float* C) {
  int64_t i = element_index();
  if (i >= M * N) return;
  int64_t m = i / N, n = i % N;
  float sum = 0;
  for (int64_t k = 0; k < K; ++k) sum += A[m * a_row + k * a_column] * B[k * b_row + n * b_column];
  C[i] = sum;
}

static const int kTile = 32;

// Copies op(X)[row0 .. row0 + 31, column0 .. column0 + 31] to shared memory, zeros where op(X)
// ends. Neighbouring threads read neighbouring addresses: along a row of X, which is a column
// of op(X) if transposed.
__device__ static void load_tile(float (*tile)[kTile + 1], const float* X, bool transposed,
                                 int64_t row0, int64_t column0, int64_t rows, int64_t columns) {
  int r = transposed ? threadIdx.x : threadIdx.y;
  int c = transposed ? threadIdx.y : threadIdx.x;
  int64_t row = row0 + r, column = column0 + c;
  float value = 0;
  if (row < rows && column < columns)
    value = transposed ? X[column * rows + row] : X[row * columns + column];
  tile[r][c] = value;
}

// Version 2: a block computes a tile of 32 x 32 elements of C, and shares the tiles of A and B
// that it needs.
// in: A, B as stored, and whether each is transposed. out: M x N.
// grid: 1-D, a block of 32 x 32 threads a tile of C, so that no number of tiles is too large.
// cost: 2MNK operations, 8 * MNK / 32 bytes read. The 33rd column of a tile keeps the
// transposed store out of a single bank of shared memory.
// next: each operation still reads shared memory twice; part 3 keeps sub-tiles in registers.
__global__ void matrix_multiply_kernel(int64_t M, int64_t N, int64_t K, const float* A,
                                       bool transpose_a, const float* B, bool transpose_b,
                                       float* C) {
  __shared__ float a_tile[kTile][kTile + 1], b_tile[kTile][kTile + 1];
  int64_t tiles_n = (N + kTile - 1) / kTile;
  int64_t row0 = blockIdx.x / tiles_n * kTile, column0 = blockIdx.x % tiles_n * kTile;
  float sum = 0;
  for (int64_t k0 = 0; k0 < K; k0 += kTile) {
    load_tile(a_tile, A, transpose_a, row0, k0, M, K);
    load_tile(b_tile, B, transpose_b, k0, column0, K, N);
    __syncthreads();  // the tiles are complete
    for (int k = 0; k < kTile; ++k) sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
    __syncthreads();  // nobody reads them any more
  }
  int64_t m = row0 + threadIdx.y, n = column0 + threadIdx.x;
  if (m < M && n < N) C[m * N + n] = sum;
}

extern "C" int DLGpuMatrixMultiplyV1(const DLArrayHandle matA, bool transposeA,
                                     const DLArrayHandle matB, bool transposeB,
                                     DLArrayHandle matC) {
  int64_t M = matC->shape[0], N = matC->shape[1], K = matA->shape[transposeA ? 0 : 1];
  if (M * N == 0) return 0;
  matrix_multiply_kernel_v1<<<blocks_for(M * N, kThreads), kThreads>>>(
      M, N, K, data_of(matA), transposeA ? 1 : K, transposeA ? M : 1, data_of(matB),
      transposeB ? 1 : N, transposeB ? K : 1, data_of(matC));
  return launched("matrix_multiply, version 1");
}
int DLGpuMatrixMultiply(const DLArrayHandle matA, bool transposeA, const DLArrayHandle matB,
                        bool transposeB, DLArrayHandle matC) {
  REQUIRE(matA->ndim == 2 && matB->ndim == 2 && matC->ndim == 2,
          "matrix_multiply: A is " + shape_of(matA) + ", B is " + shape_of(matB) + ", C is " +
              shape_of(matC) + "; all must be 2-D");
  int64_t M = matA->shape[transposeA ? 1 : 0], K = matA->shape[transposeA ? 0 : 1];
  int64_t N = matB->shape[transposeB ? 0 : 1];
  REQUIRE(matB->shape[transposeB ? 1 : 0] == K && matC->shape[0] == M && matC->shape[1] == N,
          "matrix_multiply: sizes differ: A is " + shape_of(matA) +
              (transposeA ? " transposed" : "") + ", B is " + shape_of(matB) +
              (transposeB ? " transposed" : "") + ", C is " + shape_of(matC));
  if (M * N == 0) return 0;
  int64_t tiles = static_cast<int64_t>(blocks_for(M, kTile)) * blocks_for(N, kTile);
  matrix_multiply_kernel<<<blocks_for(tiles, 1), dim3(kTile, kTile)>>>(
      M, N, K, data_of(matA), transposeA, data_of(matB), transposeB, data_of(matC));
  return launched("matrix_multiply");
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient. As in numpy, relu of NaN is NaN.
// out[i] = max(in[i], 0)
// in: n floats. out: n floats, may be in. grid: 1-D, a thread an element. cost: 8n bytes.
// next: float4 loads, in part 3. Written so that NaN stays NaN, as in numpy; fmaxf drops it.
__global__ void relu_kernel(int64_t n, const float* in, float* out) {
  int64_t i = element_index();
  if (i < n) out[i] = in[i] * (in[i] > 0 || isnan(in[i]));
}
int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  int64_t n = size_of(output);
  if (n == 0) return 0;
  relu_kernel<<<blocks_for(n, kThreads), kThreads>>>(n, data_of(input), data_of(output));
  return launched("relu");
}
// out[i] = in[i] > 0 ? grad[i] : 0
// in: two times n floats. out: n floats, may be in or grad. grid: 1-D, a thread an element.
// cost: 12n bytes. next: float4 loads, in part 3.
__global__ void relu_gradient_kernel(int64_t n, const float* in, const float* grad, float* out) {
  int64_t i = element_index();
  if (i < n) out[i] = in[i] > 0 ? grad[i] : 0;
}
int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  return map("relu_gradient", size_of(output), Gate{}, data_of(output), data_of(input),
             data_of(in_grad));
}

// ---------------------------------------------------------------------------------------------
// softmax
// Version 1: out[i, j] = exp(in[i, j] - max_i) / sum over j of exp(in[i, j] - max_i)
// in, out: rows x columns. grid: 1-D, a thread a row.
// cost: 16 bytes an element: read three times, written once. Subtracting the largest value
// changes nothing in the quotient and keeps exp from overflowing.
// next: neighbouring threads read addresses a row apart, so each load brings 32 bytes for 4
// wanted. Version 2 gives a row to a warp.
__global__ void softmax_kernel_v1(int64_t rows, int64_t columns, const float* in, float* out) {
  int64_t i = element_index();
  if (i >= rows) return;
  const float* x = in + i * columns;
  float largest = x[0], sum = 0;
  for (int64_t j = 1; j < columns; ++j) largest = max(largest, x[j]);
  for (int64_t j = 0; j < columns; ++j) sum += expf(x[j] - largest);
  for (int64_t j = 0; j < columns; ++j) out[i * columns + j] = expf(x[j] - largest) / sum;
}

static const int kWarp = 32;
static const int kRowsPerBlock = 8;

// The largest value, and the sum, over the 32 lanes of a warp, in 5 steps and in registers:
// lane l exchanges with lane l xor 16, 8, 4, 2, 1. Every lane gets the result.
__device__ static float warp_max(float value) {
  for (int step = kWarp / 2; step > 0; step /= 2)
    value = max(value, __shfl_xor_sync(0xffffffff, value, step));
  return value;
}

__device__ static float warp_sum(float value) {
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
  return value;
}

// Version 2: as version 1, the lanes of a warp side by side on one row.
// in, out: rows x columns. grid: 1-D, a block of 32 x 8 threads for 8 rows.
// cost: 16 bytes an element at most; rows that stay in the cache are read from memory once.
// next: keep the row in registers where it fits, in part 5.
__global__ void softmax_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  int64_t i = static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.y;
  if (i >= rows) return;  // the whole warp leaves: nobody waits for it
  const float* x = in + i * columns;
  float largest = -INFINITY, sum = 0;
  for (int64_t j = threadIdx.x; j < columns; j += kWarp) largest = max(largest, x[j]);
  largest = warp_max(largest);
  for (int64_t j = threadIdx.x; j < columns; j += kWarp) sum += expf(x[j] - largest);
  sum = warp_sum(sum);
  for (int64_t j = threadIdx.x; j < columns; j += kWarp)
    out[i * columns + j] =
        exp2f(x[j] * 1.4426950408889634f - (largest * 1.4426950408889634f + log2f(sum)));
}

extern "C" int DLGpuSoftmaxV1(const DLArrayHandle input, DLArrayHandle output) {
  int64_t rows = input->shape[0], columns = input->shape[1];
  if (rows * columns == 0) return 0;
  softmax_kernel_v1<<<blocks_for(rows, kThreads), kThreads>>>(rows, columns, data_of(input),
                                                              data_of(output));
  return launched("softmax, version 1");
}
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  int64_t rows = input->shape[0], columns = input->shape[1];
  if (rows * columns == 0) return 0;
  dim3 block(kWarp, kRowsPerBlock);
  softmax_kernel<<<blocks_for(rows, kRowsPerBlock), block>>>(rows, columns, data_of(input),
                                                             data_of(output));
  return launched("softmax");
}

// ---------------------------------------------------------------------------------------------
// softmax_cross_entropy: given, as an example of a kernel whose threads work together

// -sum over j of labels[j] * log(softmax(logits)[j]), for one row
__device__ static float row_cross_entropy(int64_t columns, const float* logits,
                                          const float* labels) {
  float largest = logits[0], sum = 0, loss = 0;
  for (int64_t j = 1; j < columns; ++j) largest = max(largest, logits[j]);
  for (int64_t j = 0; j < columns; ++j) sum += expf(logits[j] - largest);
  float log_sum = logf(sum);
  for (int64_t j = 0; j < columns; ++j) loss -= labels[j] * (logits[j] - largest - log_sum);
  return loss;
}

// out[0] = mean over rows of row_cross_entropy
// in: two times rows x columns. out: 1 float. grid: one block, so that its threads can add up
// their losses in shared memory. cost: 16 bytes an element.
// next: more blocks, a warp a row, and a second kernel that adds up the blocks.
__global__ void softmax_cross_entropy_kernel(int64_t rows, int64_t columns, const float* logits,
                                             const float* labels, float* out) {
  __shared__ float losses[kThreads];
  float loss = 0;
  // Any number of rows: thread t takes rows t, t + 256, t + 512, ...
  for (int64_t i = threadIdx.x; i < rows; i += kThreads)
    loss += row_cross_entropy(columns, logits + i * columns, labels + i * columns);
  losses[threadIdx.x] = loss;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();  // by all threads, also those that have nothing left to add
    if (threadIdx.x < half) losses[threadIdx.x] += losses[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[0] = losses[0] / rows;
}

int DLGpuSoftmaxCrossEntropy(const DLArrayHandle input_a, const DLArrayHandle input_b,
                             DLArrayHandle output) {
  REQUIRE(input_a->ndim == 2 && same_shape(input_a, input_b) && size_of(output) == 1,
          "softmax_cross_entropy: logits are " + shape_of(input_a) + ", labels are " +
              shape_of(input_b) + ", the output is " + shape_of(output) +
              "; the first two must have the same 2-D shape, the output one element");
  int64_t rows = input_a->shape[0], columns = input_a->shape[1];
  REQUIRE(rows > 0 && columns > 0, "softmax_cross_entropy: " + shape_of(input_a) + " is empty");
  softmax_cross_entropy_kernel<<<1, kThreads>>>(rows, columns, data_of(input_a), data_of(input_b),
                                                data_of(output));
  return launched("softmax_cross_entropy");
}

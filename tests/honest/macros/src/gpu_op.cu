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
#include <float.h>
#include <stdio.h>

#include "./c_runtime_api.h"
#include "./cuda_check.h"

// One thread an element, in blocks of this many: a multiple of the warp's 32 threads, and small
// enough that several blocks share a multiprocessor.
static const int kThreads = 256;

// The element of a thread in a grid of one thread an element. 64 bits: an array may have more
// than 2^31 elements.
__device__ static int64_t element_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Grid-stride loop over n elements, as in Caffe.
#define CUDA_1D_LOOP(i, n)                                                  \
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
       i += (int64_t)blockDim.x * gridDim.x)

#define BLOCKS(n) ((unsigned)(((n) + kThreads - 1) / kThreads))
#define IDX2(row, col, width) ((row) * (width) + (col))
#define MAC(acc, x, y) (acc) += (x) * (y)
#define MAXIMUM(x, y) ((x) < (y) ? (y) : (x))
#define RELU(x) MAXIMUM(x, 0.0f)

// A kernel of one input and a number: out[i] = EXPR of x and c.
#define UNARY_KERNEL(name, EXPR)                                          \
  __global__ void name(int64_t n, const float* in, float c, float* out) { \
    CUDA_1D_LOOP(i, n) {                                                  \
      const float x = in[i];                                              \
      out[i] = (EXPR);                                                    \
    }                                                                     \
  }

#define BINARY_KERNEL(name, EXPR)                                                     \
  __global__ void name(int64_t n, const float* in_a, const float* in_b, float* out) { \
    CUDA_1D_LOOP(i, n) {                                                              \
      const float a = in_a[i], b = in_b[i];                                           \
      out[i] = (EXPR);                                                                \
    }                                                                                 \
  }

#define LAUNCH_1D(kernel, n, ...)                                  \
  do {                                                             \
    int64_t n_ = (n);                                              \
    if (n_ > 0) kernel<<<BLOCKS(n_), kThreads>>>(n_, __VA_ARGS__); \
  } while (0)

#define CUDA_CHECK(call)                                                          \
  do {                                                                            \
    cudaError_t e_ = (call);                                                      \
    if (e_ != cudaSuccess) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      return -1;                                                                  \
    }                                                                             \
  } while (0)

#define TILE 16

// ---------------------------------------------------------------------------------------------
// array_set

__global__ void set_kernel(int64_t n, float value, float* out) {
  CUDA_1D_LOOP(i, n) out[i] = value;
}
int DLGpuArraySet(DLArrayHandle arr, float value) {
  LAUNCH_1D(set_kernel, size_of(arr), value, data_of(arr));
  return launched("array_set");
}

// ---------------------------------------------------------------------------------------------
// broadcast_to

__global__ void tile_kernel(int64_t n, int64_t inner, const float* in, float* out) {
  CUDA_1D_LOOP(i, n) out[i] = in[i % inner];
}
int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");
  LAUNCH_1D(tile_kernel, size_of(output), size_of(input), data_of(input), data_of(output));
  return launched("broadcast_to");
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero

__global__ void sum_kernel(int64_t columns, int64_t rows, const float* in, float* out) {
  CUDA_1D_LOOP(j, columns) {
    float acc = 0;
    for (int64_t r = 0; r < rows; ++r) MAC(acc, 1.0f, in[IDX2(r, j, columns)]);
    out[j] = acc;
  }
}
int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));
  LAUNCH_1D(sum_kernel, columns, rows, data_of(input), data_of(output));
  return launched("reduce_sum_axis_zero");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant

BINARY_KERNEL(add_kernel, a + b)
int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  LAUNCH_1D(add_kernel, size_of(output), data_of(matA), data_of(matB), data_of(output));
  return launched("matrix_elementwise_add");
}

UNARY_KERNEL(add_const_kernel, x + c)
int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  LAUNCH_1D(add_const_kernel, size_of(output), data_of(input), val, data_of(output));
  return launched("matrix_elementwise_add_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant

BINARY_KERNEL(mul_kernel, a* b)
int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  LAUNCH_1D(mul_kernel, size_of(output), data_of(matA), data_of(matB), data_of(output));
  return launched("matrix_elementwise_multiply");
}

UNARY_KERNEL(mul_const_kernel, x* c)
int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  LAUNCH_1D(mul_const_kernel, size_of(output), data_of(input), val, data_of(output));
  return launched("matrix_elementwise_multiply_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply

#define LOAD(tile, ptr, trans, row, col, height, width)                          \
  tile[threadIdx.y][threadIdx.x] =                                               \
      (row) < (height) && (col) < (width)                                        \
          ? ((trans) ? ptr[IDX2(col, row, height)] : ptr[IDX2(row, col, width)]) \
          : 0.0f

__global__ void matmul_kernel(int64_t M, int64_t N, int64_t K, const float* A, bool tA,
                              const float* B, bool tB, float* C) {
  __shared__ float As[TILE][TILE], Bs[TILE][TILE];
  const int64_t row = (int64_t)blockIdx.y * TILE + threadIdx.y;
  const int64_t col = (int64_t)blockIdx.x * TILE + threadIdx.x;
  float acc = 0;
  for (int64_t k0 = 0; k0 < K; k0 += TILE) {
    LOAD(As, A, tA, row, k0 + threadIdx.x, M, K);
    LOAD(Bs, B, tB, k0 + threadIdx.y, col, K, N);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) MAC(acc, As[threadIdx.y][k], Bs[k][threadIdx.x]);
    __syncthreads();
  }
  if (row < M && col < N) C[IDX2(row, col, N)] = acc;
}
#undef LOAD
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
  dim3 block(TILE, TILE), grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
  matmul_kernel<<<grid, block>>>(M, N, K, data_of(matA), transposeA, data_of(matB), transposeB,
                                 data_of(matC));
  CUDA_CHECK(cudaPeekAtLastError());
  return launched("matrix_multiply");
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient

UNARY_KERNEL(relu_kernel, RELU(x))
int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  LAUNCH_1D(relu_kernel, size_of(output), data_of(input), 0.0f, data_of(output));
  return launched("relu");
}

BINARY_KERNEL(relu_gradient_kernel, a > 0 ? b : 0)
int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  LAUNCH_1D(relu_gradient_kernel, size_of(output), data_of(input), data_of(in_grad),
            data_of(output));
  return launched("relu_gradient");
}

// ---------------------------------------------------------------------------------------------
// softmax

#define FOR_ROW(j) for (int64_t j = 0; j < columns; ++j)

__global__ void softmax_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  CUDA_1D_LOOP(i, rows) {
    const float* x = in + i * columns;
    float* y = out + i * columns;
    float largest = -FLT_MAX, sum = 0;
    FOR_ROW(j) largest = MAXIMUM(largest, x[j]);
    FOR_ROW(j) sum += (y[j] = expf(x[j] - largest));
    FOR_ROW(j) y[j] /= sum;
  }
}
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  LAUNCH_1D(softmax_kernel, input->shape[0], input->shape[1], data_of(input), data_of(output));
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

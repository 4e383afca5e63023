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
__device__ static int64_t element_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Fixed grids, whatever the size: threads go through the array in steps of the whole grid.
constexpr int kBlocks = 64;
constexpr int kBlockSize = 128;

static __device__ __forceinline__ size_t grid_start() {
  return blockIdx.x * (size_t)blockDim.x + threadIdx.x;
}
static __device__ __forceinline__ size_t grid_step() { return (size_t)gridDim.x * blockDim.x; }

// ---------------------------------------------------------------------------------------------
// array_set

__global__ void array_set_kernel(float* __restrict__ arr, size_t n, float value) {
  for (size_t i = grid_start(); i < n; i += grid_step()) arr[i] = value;
}
int DLGpuArraySet(DLArrayHandle arr, float value) {
  array_set_kernel<<<kBlocks, kBlockSize>>>(data_of(arr), size_of(arr), value);
  return launched("array_set");
}

// ---------------------------------------------------------------------------------------------
// broadcast_to

__global__ void broadcast_to_kernel(const float* __restrict__ in, float* __restrict__ out,
                                    size_t size, size_t copies) {
  for (size_t i = grid_start(); i < size; i += grid_step()) {
    const float value = in[i];
    float* __restrict__ target = out + i;
    while (target < out + size * copies) {
      *target = value;
      target += size;
    }
  }
}
int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");
  broadcast_to_kernel<<<kBlocks, kBlockSize>>>(data_of(input), data_of(output), size_of(input),
                                               output->shape[0]);
  return launched("broadcast_to");
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero

__global__ void reduce_sum_kernel(const float* __restrict__ in, float* __restrict__ out,
                                  size_t rows, size_t columns) {
  for (size_t j = grid_start(); j < columns; j += grid_step()) {
    const float* __restrict__ p = in + j;
    float even = 0, odd = 0;
    size_t r = 0;
    for (; r + 1 < rows; r += 2, p += 2 * columns) {
      even += p[0];
      odd += p[columns];
    }
    if (r < rows) even += *p;
    out[j] = even + odd;
  }
}
int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));
  reduce_sum_kernel<<<kBlocks, kBlockSize>>>(data_of(input), data_of(output), rows, columns);
  return launched("reduce_sum_axis_zero");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant

// No __restrict__ here: the output may be an input.
__global__ void add_kernel(const float* a, const float* b, float* out, size_t n) {
  const size_t step = grid_step();
  for (size_t i = grid_start(); i < n; i += step) out[i] = a[i] + b[i];
}
int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  add_kernel<<<kBlocks, kBlockSize>>>(data_of(matA), data_of(matB), data_of(output),
                                      size_of(output));
  return launched("matrix_elementwise_add");
}

__global__ void add_const_kernel(const float* in, const float val, float* out, size_t n) {
  size_t i = grid_start();
  while (i < n) {
    out[i] = in[i] + val;
    i += grid_step();
  }
}
int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  add_const_kernel<<<kBlocks, kBlockSize>>>(data_of(input), val, data_of(output), size_of(output));
  return launched("matrix_elementwise_add_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant

__global__ void mul_kernel(const float* a, const float* b, float* out, size_t n) {
  // Four elements a turn, where there are four.
  const size_t step = grid_step();
  size_t i = grid_start();
  for (; i + 3 * step < n; i += 4 * step) {
    float w = a[i] * b[i], x = a[i + step] * b[i + step];
    float y = a[i + 2 * step] * b[i + 2 * step], z = a[i + 3 * step] * b[i + 3 * step];
    out[i] = w;
    out[i + step] = x;
    out[i + 2 * step] = y;
    out[i + 3 * step] = z;
  }
  for (; i < n; i += step) out[i] = a[i] * b[i];
}
int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  mul_kernel<<<kBlocks, kBlockSize>>>(data_of(matA), data_of(matB), data_of(output),
                                      size_of(output));
  return launched("matrix_elementwise_multiply");
}

__global__ void mul_const_kernel(const float* in, const float val, float* out, size_t n) {
  size_t i = grid_start();
  if (i >= n) return;
  do {
    out[i] = in[i] * val;
  } while ((i += grid_step()) < n);
}
int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  mul_const_kernel<<<kBlocks, kBlockSize>>>(data_of(input), val, data_of(output), size_of(output));
  return launched("matrix_elementwise_multiply_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply

__global__ void matmul_kernel(const float* __restrict__ A, const float* __restrict__ B,
                              float* __restrict__ C, size_t M, size_t N, size_t K, size_t row_a,
                              size_t step_a, size_t step_b, size_t column_b) {
  for (size_t i = grid_start(); i < M * N; i += grid_step()) {
    const float* __restrict__ a = A + i / N * row_a;
    const float* __restrict__ b = B + i % N * column_b;
    float sum = 0;
    for (size_t k = 0; k < K; ++k) sum += a[k * step_a] * b[k * step_b];
    C[i] = sum;
  }
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
  // A stride for each axis, so that a transpose is only another pair of strides.
  size_t row_a = K, step_a = 1, step_b = N, column_b = 1;
  if (transposeA) row_a = 1, step_a = M;
  if (transposeB) step_b = 1, column_b = K;
  const int blocks = std::max<int64_t>(1, std::min<int64_t>(1024, (M * N + 255) / 256));
  matmul_kernel<<<blocks, 256>>>(data_of(matA), data_of(matB), data_of(matC), M, N, K, row_a,
                                 step_a, step_b, column_b);
  return launched("matrix_multiply");
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient

__global__ void relu_kernel(const float* in, float* out, size_t n) {
  for (size_t i = grid_start(); i < n; i += grid_step()) {
    out[i] = in[i] * (in[i] > 0);
  }
}
int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  relu_kernel<<<kBlocks, kBlockSize>>>(data_of(input), data_of(output), size_of(output));
  return launched("relu");
}

__global__ void relu_gradient_kernel(const float* in, const float* grad, float* out, size_t n) {
  for (size_t i = grid_start(); i < n; i += grid_step()) {
    if (in[i] > 0)
      out[i] = grad[i];
    else
      out[i] = 0;
  }
}
int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  relu_gradient_kernel<<<kBlocks, kBlockSize>>>(data_of(input), data_of(in_grad), data_of(output),
                                                size_of(output));
  return launched("relu_gradient");
}

// ---------------------------------------------------------------------------------------------
// softmax

// In one pass: the sum so far is scaled when a larger element comes.
__global__ void softmax_kernel(const float* __restrict__ in, float* __restrict__ out, size_t rows,
                               size_t columns) {
  for (size_t i = grid_start(); i < rows; i += grid_step()) {
    const float* __restrict__ x = in + i * columns;
    float* __restrict__ y = out + i * columns;
    float most = x[0], sum = 1;
    for (size_t j = 1; j < columns; ++j) {
      if (x[j] > most) {
        sum *= expf(most - x[j]);
        most = x[j];
      }
      sum += expf(x[j] - most);
    }
    const float scale = 1 / sum;
    for (size_t j = 0; j < columns; ++j) y[j] = expf(x[j] - most) * scale;
  }
}
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  if (input->shape[1] == 0) return 0;
  softmax_kernel<<<kBlocks, kBlockSize>>>(data_of(input), data_of(output), input->shape[0],
                                          input->shape[1]);
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

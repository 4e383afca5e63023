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

// A shape (d0, d1, ..., dn) is seen as planes x rows x columns.
struct Box {
  unsigned planes, rows, columns;
};

static Box box_of(const DLArray* a) {
  Box box = {1, 1, 1};
  if (a->ndim > 0) box.columns = (unsigned)a->shape[a->ndim - 1];
  if (a->ndim > 1) box.rows = (unsigned)a->shape[a->ndim - 2];
  for (int i = 0; i + 2 < a->ndim; ++i) box.planes *= (unsigned)a->shape[i];
  return box;
}

static dim3 block_for() { return dim3(32, 4, 2); }
static dim3 grid_for(const Box& box) {
  dim3 block = block_for();
  // y and z may have 65,535 blocks each: the kernels loop over what is beyond.
  return dim3((box.columns + block.x - 1) / block.x,
              min((box.rows + block.y - 1) / block.y, 65535u),
              min((box.planes + block.z - 1) / block.z, 65535u));
}

// Calls body(index) for each element of the box that is this thread's.
template <typename Body>
__device__ static void each_element(Box box, Body body) {
  unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= box.columns) return;
  for (unsigned plane = blockIdx.z * blockDim.z + threadIdx.z; plane < box.planes;
       plane += gridDim.z * blockDim.z)
    for (unsigned row = blockIdx.y * blockDim.y + threadIdx.y; row < box.rows;
         row += gridDim.y * blockDim.y)
      body(((size_t)plane * box.rows + row) * box.columns + column);
}

// ---------------------------------------------------------------------------------------------
// array_set

__global__ void set_kernel(Box box, float value, float* out) {
  each_element(box, [=](size_t i) { out[i] = value; });
}
int DLGpuArraySet(DLArrayHandle arr, float value) {
  Box box = box_of(arr);
  if (size_of(arr) == 0) return 0;
  set_kernel<<<grid_for(box), block_for()>>>(box, value, data_of(arr));
  return launched("array_set");
}

// ---------------------------------------------------------------------------------------------
// broadcast_to

// x: element, y: copy. A thread writes four copies of its element.
__global__ void broadcast_kernel(int64_t size, int64_t copies, const float* in, float* out) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int64_t first = 4 * ((int64_t)blockIdx.y * blockDim.y + threadIdx.y);
  if (i >= size || first >= copies) return;
  float value = in[i];
#pragma unroll
  for (int c = 0; c < 4; ++c)
    if (first + c < copies) out[(first + c) * size + i] = value;
}
int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");
  int64_t size = size_of(input), copies = output->shape[0];
  if (size == 0 || copies == 0) return 0;
  dim3 block(64, 4);
  broadcast_kernel<<<dim3(blocks_for(size, 64), blocks_for(copies, 16)), block>>>(
      size, copies, data_of(input), data_of(output));
  return launched("broadcast_to");
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero

// 32 columns a block; its 8 rows of threads take every eighth row each, then add up in shared
// memory.
__global__ void reduce_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  __shared__ float sums[8][32];
  int64_t j = (int64_t)blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (j < columns)
    for (int64_t i = threadIdx.y; i < rows; i += 8) sum += in[i * columns + j];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  for (int half = 4; half >= 1; half >>= 1) {
    if (threadIdx.y < half) sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + half][threadIdx.x];
    __syncthreads();
  }
  if (threadIdx.y == 0 && j < columns) out[j] = sums[0][threadIdx.x];
}
int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));
  if (columns == 0) return 0;
  reduce_kernel<<<blocks_for(columns, 32), dim3(32, 8)>>>(rows, columns, data_of(input),
                                                          data_of(output));
  return launched("reduce_sum_axis_zero");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant

__global__ void add_kernel(Box box, const float* a, const float* b, float* out) {
  each_element(box, [=](size_t i) { out[i] = a[i] + b[i]; });
}
int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  if (size_of(output) == 0) return 0;
  Box box = box_of(output);
  add_kernel<<<grid_for(box), block_for()>>>(box, data_of(matA), data_of(matB), data_of(output));
  return launched("matrix_elementwise_add");
}

__global__ void add_const_kernel(Box box, const float* in, float val, float* out) {
  each_element(box, [=](size_t i) { out[i] = in[i] + val; });
}
int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  if (size_of(output) == 0) return 0;
  Box box = box_of(output);
  add_const_kernel<<<grid_for(box), block_for()>>>(box, data_of(input), val, data_of(output));
  return launched("matrix_elementwise_add_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant

__global__ void multiply_kernel(Box box, const float* a, const float* b, float* out) {
  each_element(box, [&](size_t i) { out[i] = a[i] * b[i]; });
}
int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  if (size_of(output) == 0) return 0;
  Box box = box_of(output);
  multiply_kernel<<<grid_for(box), block_for()>>>(box, data_of(matA), data_of(matB),
                                                  data_of(output));
  return launched("matrix_elementwise_multiply");
}

__global__ void multiply_const_kernel(Box box, const float* in, float val, float* out) {
  each_element(box, [&](size_t i) { out[i] = val * in[i]; });
}
int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  if (size_of(output) == 0) return 0;
  Box box = box_of(output);
  multiply_const_kernel<<<grid_for(box), block_for()>>>(box, data_of(input), val, data_of(output));
  return launched("matrix_elementwise_multiply_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply

// A block computes 64 x 64 elements, a thread 4 x 4 of them, in registers.
static const int kSide = 64, kDepth = 16, kPer = 4;

__global__ void __launch_bounds__(256) matmul_kernel(int M, int N, int K, bool transA, bool transB,
                                                     const float* A, const float* B, float* C) {
  __shared__ float a_tile[kDepth][kSide + 1], b_tile[kDepth][kSide + 1];
  const int tid = threadIdx.y * blockDim.x + threadIdx.x;
  const int top = blockIdx.y * kSide, left = blockIdx.x * kSide;
  float sums[kPer][kPer] = {};
  float a[kPer], b[kPer];

  for (int k0 = 0; k0 < K; k0 += kDepth) {
    for (int t = tid; t < kSide * kDepth; t += 256) {
      // Neighbours read neighbours, in either layout.
      int k = transA ? t / kSide : t % kDepth, i = transA ? t % kSide : t / kDepth;
      bool inside = top + i < M && k0 + k < K;
      size_t at = transA ? (size_t)(k0 + k) * M + top + i : (size_t)(top + i) * K + k0 + k;
      a_tile[k][i] = inside ? A[at] : 0;
    }
    for (int t = tid; t < kSide * kDepth; t += 256) {
      int k = transB ? t % kDepth : t / kSide, j = transB ? t / kDepth : t % kSide;
      if (left + j < N && k0 + k < K)
        b_tile[k][j] =
            transB ? B[(size_t)(left + j) * K + k0 + k] : B[(size_t)(k0 + k) * N + left + j];
      else
        b_tile[k][j] = 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
#pragma unroll
      for (int i = 0; i < kPer; ++i) a[i] = a_tile[k][threadIdx.y + 16 * i];
#pragma unroll
      for (int j = 0; j < kPer; ++j) b[j] = b_tile[k][threadIdx.x + 16 * j];
#pragma unroll
      for (int i = 0; i < kPer; ++i)
#pragma unroll
        for (int j = 0; j < kPer; ++j) sums[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < kPer; ++i)
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      int row = top + threadIdx.y + 16 * i, column = left + threadIdx.x + 16 * j;
      if (row < M && column < N) C[(size_t)row * N + column] = sums[i][j];
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
  if (M == 0 || N == 0) return 0;
  dim3 grid(blocks_for(N, kSide), blocks_for(M, kSide)), block(16, 16);
  matmul_kernel<<<grid, block>>>(M, N, K, transposeA, transposeB, data_of(matA), data_of(matB),
                                 data_of(matC));
  return launched("matrix_multiply");
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient

__global__ void relu_kernel(Box box, const float* in, float* out) {
  each_element(box, [=](size_t i) { out[i] = in[i] < 0 ? 0.0f : in[i]; });
}
int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  if (size_of(output) == 0) return 0;
  Box box = box_of(output);
  relu_kernel<<<grid_for(box), block_for()>>>(box, data_of(input), data_of(output));
  return launched("relu");
}

__global__ void relu_gradient_kernel(Box box, const float* in, const float* grad, float* out) {
  each_element(box, [=](size_t i) { out[i] = in[i] > 0 ? grad[i] : 0; });
}
int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  if (size_of(output) == 0) return 0;
  Box box = box_of(output);
  relu_gradient_kernel<<<grid_for(box), block_for()>>>(box, data_of(input), data_of(in_grad),
                                                       data_of(output));
  return launched("relu_gradient");
}

// ---------------------------------------------------------------------------------------------
// softmax

// Eight rows a block, 32 threads a row, which meet in shared memory.
__global__ void softmax_kernel(int64_t rows, int64_t columns, const float* in, float* out) {
  __shared__ float work[8][33];
  float* mine = work[threadIdx.y];
  int64_t row = (int64_t)blockIdx.x * 8 + threadIdx.y;
  bool inside = row < rows;
  const float* x = in + row * columns;
  float most = -INFINITY, sum = 0;
  if (inside)
    for (int64_t j = threadIdx.x; j < columns; j += 32) most = fmaxf(most, x[j]);
  mine[threadIdx.x] = most;
  __syncthreads();
  for (int half = 16; half > 0; half /= 2) {
    if (threadIdx.x < half) mine[threadIdx.x] = fmaxf(mine[threadIdx.x], mine[threadIdx.x + half]);
    __syncthreads();
  }
  most = mine[0];
  __syncthreads();
  if (inside)
    for (int64_t j = threadIdx.x; j < columns; j += 32) sum += expf(x[j] - most);
  mine[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 16; half > 0; half /= 2) {
    if (threadIdx.x < half) mine[threadIdx.x] += mine[threadIdx.x + half];
    __syncthreads();
  }
  if (!inside) return;
  for (int64_t j = threadIdx.x; j < columns; j += 32)
    out[row * columns + j] = expf(x[j] - most) / mine[0];
}
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  int64_t rows = input->shape[0], columns = input->shape[1];
  if (rows == 0) return 0;
  softmax_kernel<<<blocks_for(rows, 8), dim3(32, 8, 1)>>>(rows, columns, data_of(input),
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

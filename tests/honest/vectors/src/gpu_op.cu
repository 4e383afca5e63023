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
#include <stdint.h>

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

// float4 needs addresses that are multiples of 16. Arrays begin at such, but nobody promises it.
static bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % sizeof(float4) == 0; }

// How many float4 there are to take; the tail has less than four elements then, or is everything.
static int64_t fours(int64_t n, const void* a, const void* b, const void* c) {
  return aligned(a) && aligned(b) && aligned(c) ? n / 4 : 0;
}

static unsigned blocks_of(int64_t n) {
  int64_t blocks = (n / 4 + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > 2048 ? 2048 : blocks);
}

#define VECTOR_KERNEL(name, EXPR)                                                            \
  __global__ void name(int64_t n, int64_t n4, const float* in_a, const float* in_b, float c, \
                       float* out) {                                                         \
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;                       \
    for (int64_t i = element_index(); i < n4; i += step) {                                   \
      float4 a4 = reinterpret_cast<const float4*>(in_a)[i];                                  \
      float4 b4 = reinterpret_cast<const float4*>(in_b)[i];                                  \
      float4 result;                                                                         \
      {                                                                                      \
        float a = a4.x, b = b4.x;                                                            \
        (void)b;                                                                             \
        result.x = EXPR;                                                                     \
      }                                                                                      \
      {                                                                                      \
        float a = a4.y, b = b4.y;                                                            \
        (void)b;                                                                             \
        result.y = EXPR;                                                                     \
      }                                                                                      \
      {                                                                                      \
        float a = a4.z, b = b4.z;                                                            \
        (void)b;                                                                             \
        result.z = EXPR;                                                                     \
      }                                                                                      \
      {                                                                                      \
        float a = a4.w, b = b4.w;                                                            \
        (void)b;                                                                             \
        result.w = EXPR;                                                                     \
      }                                                                                      \
      reinterpret_cast<float4*>(out)[i] = result;                                            \
    }                                                                                        \
    for (int64_t i = 4 * n4 + element_index(); i < n; i += step) {                           \
      float a = in_a[i], b = in_b[i];                                                        \
      (void)b;                                                                               \
      out[i] = EXPR;                                                                         \
    }                                                                                        \
  }

#define LAUNCH(kernel, a, b, c, out)                                                        \
  do {                                                                                      \
    int64_t n = size_of(out);                                                               \
    if (n > 0)                                                                              \
      kernel<<<blocks_of(n), kThreads>>>(n, fours(n, data_of(a), data_of(b), data_of(out)), \
                                         data_of(a), data_of(b), c, data_of(out));          \
  } while (0)

// ---------------------------------------------------------------------------------------------
// array_set

__global__ void set_kernel(int64_t n, int64_t n4, float value, float* out) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const float4 four = make_float4(value, value, value, value);
  for (int64_t i = element_index(); i < n4; i += step) ((float4*)out)[i] = four;
  const int64_t tail = 4 * n4 + element_index();
  if (n4 > 0 ? tail < n : false) out[tail] = value;
  if (n4 == 0)
    for (int64_t i = element_index(); i < n; i += step) out[i] = value;
}
int DLGpuArraySet(DLArrayHandle arr, float value) {
  int64_t n = size_of(arr);
  float* out = data_of(arr);
  if (n > 0) set_kernel<<<blocks_of(n), kThreads>>>(n, fours(n, out, out, out), value, out);
  return launched("array_set");
}

// ---------------------------------------------------------------------------------------------
// broadcast_to

// The input is read through the read-only cache; nobody writes it here.
__global__ void broadcast_kernel(int64_t size, int64_t copies, const float4* __restrict__ in,
                                 float4* __restrict__ out) {
  const int64_t i = element_index();
  if (i >= size) return;
  const float4 value = __ldg(in + i);
  for (int64_t c = blockIdx.y; c < copies; c += gridDim.y) out[c * size + i] = value;
}

__global__ void broadcast_kernel(int64_t size, int64_t copies, const float* __restrict__ in,
                                 float* __restrict__ out) {
  const int64_t i = element_index();
  if (i >= size) return;
  const float value = __ldg(&in[i]);
  for (int64_t c = blockIdx.y; c < copies; c += gridDim.y) out[c * size + i] = value;
}
int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");
  int64_t size = size_of(input), copies = output->shape[0];
  if (size * copies == 0) return 0;
  const unsigned y = copies < 8 ? (unsigned)copies : 8u;
  // Each copy begins at a multiple of 16 bytes only if a row is made of whole float4.
  if (size % 4 == 0 && aligned(data_of(input)) && aligned(data_of(output)))
    broadcast_kernel<<<dim3(blocks_for(size / 4, kThreads), y), kThreads>>>(
        size / 4, copies, reinterpret_cast<const float4*>(data_of(input)),
        reinterpret_cast<float4*>(data_of(output)));
  else
    broadcast_kernel<<<dim3(blocks_for(size, kThreads), y), kThreads>>>(
        size, copies, data_of(input), data_of(output));
  return launched("broadcast_to");
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero

// The sum of one column or of few: a block a piece of the rows, and the block that is done last
// adds up the pieces, as in the sample threadFenceReduction.
static const int kPieces = 32;
__device__ unsigned int pieces_done = 0;
__device__ float piece_sums[kPieces];

__global__ void sum_vector_kernel(int64_t n, const float* __restrict__ in, float* out) {
  __shared__ float sums[kThreads];
  __shared__ bool is_last;
  float sum = 0;
  for (int64_t i = element_index(); i < n; i += static_cast<int64_t>(gridDim.x) * blockDim.x)
    sum += __ldg(in + i);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int s = kThreads / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    piece_sums[blockIdx.x] = sums[0];
    __threadfence();  // the sum is there before the count says so
    unsigned int ticket = atomicInc(&pieces_done, gridDim.x);
    is_last = ticket == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    __threadfence();
    volatile float* pieces = piece_sums;
    float total = 0;
    for (int b = 0; b < gridDim.x; ++b) total += pieces[b];
    *out = total;
    pieces_done = 0;  // for the next launch
  }
}

__global__ void sum_columns_kernel(int64_t rows, int64_t columns, const float* __restrict__ in,
                                   float* out) {
  const int64_t j = element_index();
  if (j >= columns) return;
  float sum = 0;
  for (int64_t i = blockIdx.y; i < rows; i += gridDim.y) sum += __ldg(&in[i * columns + j]);
  atomicAdd(out + j, sum);
}
int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));
  if (columns == 0) return 0;
  if (columns == 1) {
    int64_t pieces = blocks_for(rows, kThreads);
    pieces = pieces < 1 ? 1 : pieces > kPieces ? kPieces : pieces;
    sum_vector_kernel<<<(unsigned)pieces, kThreads>>>(rows, data_of(input), data_of(output));
  } else {
    cudaMemsetAsync(data_of(output), 0, columns * sizeof(float), 0);
    dim3 grid(blocks_for(columns, kThreads), rows < 16 ? 1 : 16);
    sum_columns_kernel<<<grid, kThreads>>>(rows, columns, data_of(input), data_of(output));
  }
  return launched("reduce_sum_axis_zero");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant

VECTOR_KERNEL(add_kernel, a + b)
int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  LAUNCH(add_kernel, matA, matB, 0, output);
  return launched("matrix_elementwise_add");
}

VECTOR_KERNEL(add_const_kernel, a + c)
int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  LAUNCH(add_const_kernel, input, input, val, output);
  return launched("matrix_elementwise_add_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant

VECTOR_KERNEL(multiply_kernel, a* b)
int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  LAUNCH(multiply_kernel, matA, matB, 0, output);
  return launched("matrix_elementwise_multiply");
}

VECTOR_KERNEL(multiply_const_kernel, a* c)
int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  LAUNCH(multiply_const_kernel, input, input, val, output);
  return launched("matrix_elementwise_multiply_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply

// Split over K: each block of z adds its part of the sum into an output that is zero at first.
__global__ void matmul_kernel(int M, int N, int K, int part, const float* __restrict__ A, bool tA,
                              const float* __restrict__ B, bool tB, float* C) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M || col >= N) return;
  const int begin = blockIdx.z * part, end = min(begin + part, K);
  float sum = 0;
  for (int k = begin; k < end; ++k)
    sum += __ldg(&A[tA ? (int64_t)k * M + row : (int64_t)row * K + k]) *
           __ldg(&B[tB ? (int64_t)col * K + k : (int64_t)k * N + col]);
  atomicAdd(&C[(int64_t)row * N + col], sum);
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
  const int part = 128;
  cudaMemset(data_of(matC), 0, M * N * sizeof(float));
  dim3 block(32, 8);
  dim3 grid(blocks_for(N, 32), blocks_for(M, 8), K > 0 ? blocks_for(K, part) : 1);
  matmul_kernel<<<grid, block>>>(M, N, K, part, data_of(matA), transposeA, data_of(matB),
                                 transposeB, data_of(matC));
  return launched("matrix_multiply");
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient

VECTOR_KERNEL(relu_kernel, a < c ? c : a)
int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  LAUNCH(relu_kernel, input, input, 0.f, output);
  return launched("relu");
}

VECTOR_KERNEL(relu_gradient_kernel, a > c ? b : c)
int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  LAUNCH(relu_gradient_kernel, input, in_grad, 0.f, output);
  return launched("relu_gradient");
}

// ---------------------------------------------------------------------------------------------
// softmax

// A float as an integer of the same order, so that there is an atomic maximum.
__device__ static unsigned ordered(float x) {
  unsigned bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ static float unordered(unsigned u) {
  return __uint_as_float(u & 0x80000000u ? u & 0x7fffffffu : ~u);
}

// A block a row; its threads meet by atomics in shared memory.
__global__ void softmax_kernel(int64_t columns, const float* __restrict__ in, float* out) {
  __shared__ unsigned most;
  __shared__ float sum;
  const float* x = in + blockIdx.x * columns;
  if (threadIdx.x == 0) {
    most = 0;
    sum = 0;
  }
  __syncthreads();
  float mine = -FLT_MAX;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) mine = fmaxf(mine, __ldg(x + j));
  atomicMax(&most, ordered(mine));
  __syncthreads();
  const float largest = unordered(most);
  float part = 0;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) part += expf(__ldg(x + j) - largest);
  if (part != 0) atomicAdd(&sum, part);
  __syncthreads();
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x)
    out[blockIdx.x * columns + j] = expf(__ldg(x + j) - largest) / sum;
}
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  int64_t rows = input->shape[0], columns = input->shape[1];
  if (rows * columns == 0) return 0;
  const int threads = columns < 128 ? 32 : 128;
  softmax_kernel<<<(unsigned)rows, threads>>>(columns, data_of(input), data_of(output));
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

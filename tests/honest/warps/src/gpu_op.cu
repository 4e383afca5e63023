/*!
 * \file gpu_op.cu
 * \brief The kernels of the executor, and the functions that launch them.
 *
 * Arrays are float32, dense and row-major. A launcher checks shapes, launches on the default
 * stream and returns at once; `launched` says whether the launch was accepted. An array of no
 * elements needs no launch: a grid of 0 blocks is an error.
 */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <math_constants.h>

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

namespace cg = cooperative_groups;

#define FULL_MASK 0xffffffffu
static const int kWarp = 32;
static const int kMatmulTile = 32;

__device__ static float warp_sum(float v) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset >>= 1)
    v += __shfl_down_sync(FULL_MASK, v, offset);
  return v;  // right in lane 0
}

__device__ static float warp_max_all(float v) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) v = fmaxf(v, __shfl_xor_sync(FULL_MASK, v, mask));
  return v;
}

// The sum over the block, in every thread.
__device__ static float block_sum(float v) {
  __shared__ float partial[kWarp];
  __shared__ float total;
  int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  v = warp_sum(v);
  if (lane == 0) partial[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = lane < (int)(blockDim.x / kWarp) ? partial[lane] : 0.0f;
    v = warp_sum(v);
    if (lane == 0) total = v;
  }
  __syncthreads();
  return total;
}

// The maximum over the block, in every thread.
__device__ static float block_max(float v) {
  __shared__ float partial[kWarp];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  v = warp_max_all(v);
  if (lane == 0) partial[warp] = v;
  __syncthreads();
  v = partial[0];
  for (int w = 1; w < (int)(blockDim.x >> 5); w++) v = fmaxf(v, partial[w]);
  __syncthreads();  // partial may be written again by the next call
  return v;
}

// ---------------------------------------------------------------------------------------------
// array_set

__global__ void set_kernel(float* out, int64_t n, float value) {
  int64_t i = element_index();
  if (i < n) out[i] = value;
}
int DLGpuArraySet(DLArrayHandle arr, float value) {
  int64_t n = size_of(arr);
  if (n > 0) set_kernel<<<blocks_for(n, kThreads), kThreads>>>(data_of(arr), n, value);
  return launched("array_set");
}

// ---------------------------------------------------------------------------------------------
// broadcast_to

// A block a piece of the input: its last warp reads each element once, and the others wait for it;
// all write the copies.
__global__ void broadcast_kernel(const float* in, float* out, int64_t size, int64_t copies) {
  __shared__ float piece[kThreads];
  __shared__ volatile int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  int64_t first = (int64_t)blockIdx.x * blockDim.x;
  int here = (int)min((int64_t)blockDim.x, size - first);
  int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  if (warp == (int)blockDim.x / kWarp - 1) {
    for (int i = lane; i < here; i += kWarp) piece[i] = in[first + i];
    __threadfence_block();
    __syncwarp();
    if (lane == 0) ready = 1;
  } else {
    while (ready == 0) {
    }
    __threadfence_block();
  }
  for (int64_t c = 0; c < copies; c++)
    if ((int)threadIdx.x < here) out[c * size + first + threadIdx.x] = piece[threadIdx.x];
}
int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");
  int64_t size = size_of(input), copies = output->shape[0];
  if (size > 0 && copies > 0)
    broadcast_kernel<<<blocks_for(size, kThreads), kThreads>>>(data_of(input), data_of(output),
                                                               size, copies);
  return launched("broadcast_to");
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero

// A block a piece of the rows. Blocks draw tickets, and add their sums to the output in this order:
// so the result is the same on each run.
static const int kRows = 16;
__device__ unsigned tickets;
__device__ unsigned turn;
__global__ void reduce_kernel(const float* in, float* out, int64_t rows, int64_t columns) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(&tickets, 1u);
  __syncthreads();
  if (threadIdx.x == 0) {
    while (*(volatile unsigned*)&turn != ticket);
    __threadfence();
  }
  __syncthreads();
  int64_t begin = (int64_t)ticket * kRows, end = min(begin + kRows, rows);
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) {
    float sum = 0.0f;
    for (int64_t r = begin; r < end; r++) sum += in[r * columns + j];
    out[j] = ticket == 0 ? sum : out[j] + sum;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    bool last = ticket == gridDim.x - 1;
    if (last) tickets = 0;
    __threadfence();
    *(volatile unsigned*)&turn = last ? 0 : ticket + 1;
  }
}
int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));
  if (columns > 0)
    reduce_kernel<<<(unsigned)max((rows + kRows - 1) / kRows, (int64_t)1), 128>>>(
        data_of(input), data_of(output), rows, columns);
  return launched("reduce_sum_axis_zero");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant

__global__ void add_kernel(const float* a, const float* b, float* out, int64_t n) {
  int64_t i = element_index();
  if (i >= n) return;
  out[i] = a[i] + b[i];
}
int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  int64_t n = size_of(output);
  if (n > 0)
    add_kernel<<<blocks_for(n, kThreads), kThreads>>>(data_of(matA), data_of(matB), data_of(output),
                                                      n);
  return launched("matrix_elementwise_add");
}

__global__ void add_const_kernel(const float* in, float c, float* out, int64_t n) {
  int64_t i = element_index();
  if (i >= n) return;
  out[i] = __fadd_rn(in[i], c);
}
int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  int64_t n = size_of(output);
  if (n > 0)
    add_const_kernel<<<blocks_for(n, kThreads), kThreads>>>(data_of(input), val, data_of(output),
                                                            n);
  return launched("matrix_elementwise_add_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant

__global__ void multiply_kernel(const float* a, const float* b, float* out, int64_t n) {
  int64_t i = element_index();
  if (i >= n) return;
  out[i] = __fmul_rn(a[i], b[i]);
}
int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  int64_t n = size_of(output);
  if (n > 0)
    multiply_kernel<<<blocks_for(n, kThreads), kThreads>>>(data_of(matA), data_of(matB),
                                                           data_of(output), n);
  return launched("matrix_elementwise_multiply");
}

__global__ void multiply_const_kernel(const float* in, float c, float* out, int64_t n) {
  cg::grid_group grid = cg::this_grid();
  unsigned long long i = grid.thread_rank();
  if (i < (unsigned long long)n) out[i] = in[i] * c;
}
int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  int64_t n = size_of(output);
  if (n > 0)
    multiply_const_kernel<<<blocks_for(n, kThreads), kThreads>>>(data_of(input), val,
                                                                 data_of(output), n);
  return launched("matrix_elementwise_multiply_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply

// A in shared memory; the row of B that a warp needs travels by shuffles: lane t holds B[k0 + t].
__global__ void matmul_kernel(const float* A, bool tA, const float* B, bool tB, float* C, int64_t M,
                              int64_t N, int64_t K) {
  __shared__ float tile_b[kMatmulTile][kMatmulTile + 1];
  int lane = threadIdx.x, y = threadIdx.y;
  int64_t row = (int64_t)blockIdx.y * blockDim.y + y;
  int64_t column = (int64_t)blockIdx.x * kMatmulTile + lane;
  float sum = 0.0f;
  for (int64_t k0 = 0; k0 < K; k0 += kMatmulTile) {
    for (int r = y; r < kMatmulTile; r += blockDim.y) {
      int64_t k = k0 + r;
      bool inside = k < K && column < N;
      tile_b[r][lane] = inside ? (tB ? B[column * K + k] : B[k * N + column]) : 0.0f;
    }
    int64_t k = k0 + lane;
    float a = row < M && k < K ? (tA ? A[k * M + row] : A[row * K + k]) : 0.0f;
    __syncthreads();
    for (int t = 0; t < kMatmulTile; t++)
      sum = fmaf(__shfl_sync(FULL_MASK, a, t), tile_b[t][lane], sum);
    __syncthreads();
  }
  if (row < M && column < N) C[row * N + column] = sum;
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
  if (M * N > 0) {
    dim3 block(kMatmulTile, 8);
    dim3 grid(blocks_for(N, kMatmulTile), blocks_for(M, 8));
    matmul_kernel<<<grid, block>>>(data_of(matA), transposeA, data_of(matB), transposeB,
                                   data_of(matC), M, N, K);
  }
  return launched("matrix_multiply");
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient

__global__ void relu_kernel(const float* in, float* out, int64_t n) {
  int64_t i = element_index();
  if (i < n) out[i] = signbit(in[i]) ? 0.0f : in[i];
}
int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  int64_t n = size_of(output);
  if (n > 0) relu_kernel<<<blocks_for(n, kThreads), kThreads>>>(data_of(input), data_of(output), n);
  return launched("relu");
}

// A ballot says which lanes of the warp let their gradient through.
__global__ void relu_gradient_kernel(const float* in, const float* grad, float* out, int64_t n) {
  int64_t i = element_index();
  bool inside = i < n;
  unsigned open = __ballot_sync(FULL_MASK, inside && in[i] > 0.0f);
  if (inside) out[i] = (open >> (threadIdx.x % kWarp)) & 1u ? grad[i] : 0.0f;
}
int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  int64_t n = size_of(output);
  if (n > 0)
    relu_gradient_kernel<<<blocks_for(n, kThreads), kThreads>>>(data_of(input), data_of(in_grad),
                                                                data_of(output), n);
  return launched("relu_gradient");
}

// ---------------------------------------------------------------------------------------------
// softmax

// Narrow rows: a warp a row, eight rows a block.
__global__ void softmax_warp_kernel(const float* in, float* out, int64_t rows, int64_t columns) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int64_t row = (int64_t)blockIdx.x * (blockDim.x / kWarp) + warp.meta_group_rank();
  if (row >= rows) return;  // a whole warp
  const float* x = in + row * columns;
  float* y = out + row * columns;
  float most = -CUDART_INF_F;
  for (int64_t j = warp.thread_rank(); j < columns; j += warp.size()) most = fmaxf(most, x[j]);
  most = cg::reduce(warp, most, cg::greater<float>());
  float sum = 0.0f;
  for (int64_t j = warp.thread_rank(); j < columns; j += warp.size()) sum += __expf(x[j] - most);
  for (int i = warp.size() / 2; i > 0; i /= 2) sum += warp.shfl_xor(sum, i);
  for (int64_t j = warp.thread_rank(); j < columns; j += warp.size())
    y[j] = __fdividef(__expf(x[j] - most), sum);
}

// Wide rows: a block a row.
__global__ void softmax_block_kernel(const float* in, float* out, int64_t columns) {
  extern __shared__ float powers[];
  const float* x = in + (int64_t)blockIdx.x * columns;
  float* y = out + (int64_t)blockIdx.x * columns;
  float most = -INFINITY, sum = 0.0f;
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) most = fmaxf(most, x[j]);
  most = block_max(most);
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) {
    powers[j] = expf(x[j] - most);
    sum += powers[j];
  }
  sum = block_sum(sum);
  for (int64_t j = threadIdx.x; j < columns; j += blockDim.x) y[j] = powers[j] / sum;
}
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  int64_t rows = input->shape[0], columns = input->shape[1];
  if (rows * columns == 0) return 0;
  if (columns > 256 && columns * sizeof(float) <= 40 * 1024)
    softmax_block_kernel<<<(unsigned)rows, kThreads, columns * sizeof(float)>>>(
        data_of(input), data_of(output), columns);
  else
    softmax_warp_kernel<<<blocks_for(rows, kThreads / kWarp), kThreads>>>(
        data_of(input), data_of(output), rows, columns);
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

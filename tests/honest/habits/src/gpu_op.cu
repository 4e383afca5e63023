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

#include <cstdio>
#include <mutex>

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

// All launches of this file go to a stream of its own. Streams that cudaStreamCreate makes wait for
// the default stream, and it for them, so the order of the calls is kept.
static cudaStream_t my_stream() {
  static std::once_flag once;
  static cudaStream_t stream = 0;
  std::call_once(once, [] {
    if (cudaStreamCreate(&stream) != cudaSuccess) stream = 0;
  });
  return stream;
}

// The runtime knows best how large a block of a kernel should be.
template <typename... Parameters, typename... Arguments>
static int cover(const char* name, void (*kernel)(int64_t, Parameters...), int64_t n,
                 Arguments... arguments) {
  if (n <= 0) return 0;
  int grid = 0, threads = 0;
  cudaError_t error = cudaOccupancyMaxPotentialBlockSize(&grid, &threads, kernel, 0, 0);
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s: %s\n", name, cudaGetErrorString(error));
    threads = kThreads;
  }
  kernel<<<blocks_for(n, threads), threads, 0, my_stream()>>>(n, arguments...);
  return launched(name);
}

// ---------------------------------------------------------------------------------------------
// array_set

__global__ void array_set_kernel(int64_t n, float* arr, float value) {
  const int64_t me = element_index();
  if (me < n) arr[me] = value;
}
int DLGpuArraySet(DLArrayHandle arr, float value) {
  return cover("array_set", array_set_kernel, size_of(arr), data_of(arr), value);
}

// ---------------------------------------------------------------------------------------------
// broadcast_to

__global__ void broadcast_to_kernel(int64_t n, int64_t size, const float* in, float* out) {
  const int64_t me = element_index();
  if (!(me < n)) return;
  out[me] = in[me - me / size * size];
}
int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");
  const int64_t size = size_of(input);
  return cover("broadcast_to", broadcast_to_kernel, size_of(output), size, data_of(input),
               data_of(output));
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero

// Kahan's sum: what is lost of a small summand goes into the next one.
__global__ void reduce_kernel(int64_t columns, int64_t rows, const float* in, float* out) {
  const int64_t me = element_index();
  if (me >= columns) return;
  float sum = 0, lost = 0;
  for (const float *p = in + me, *end = in + rows * columns; p < end; p += columns) {
    const float y = *p - lost, t = sum + y;
    lost = (t - sum) - y;
    sum = t;
  }
  out[me] = sum;
}
int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));
  return cover("reduce_sum_axis_zero", reduce_kernel, columns, rows, data_of(input),
               data_of(output));
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant

enum Operation { kAdd, kMultiply, kGate };

__global__ void binary_kernel(int64_t n, Operation operation, const float* a, const float* b,
                              float* out) {
  const int64_t me = element_index();
  if (me >= n) return;
  switch (operation) {
    case kAdd:
      out[me] = a[me] + b[me];
      break;
    case kMultiply:
      out[me] = a[me] * b[me];
      break;
    case kGate:
      out[me] = a[me] > 0 ? b[me] : 0;
  }
}
int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  return cover("matrix_elementwise_add", binary_kernel, size_of(output), kAdd, data_of(matA),
               data_of(matB), data_of(output));
}

// out = scale * in + offset. With a scale of 1 or an offset of 0 it is rounded once.
__global__ void affine_kernel(int64_t n, float scale, const float* in, float offset, float* out) {
  const int64_t me = element_index();
  if (me < n) out[me] = fmaf(scale, in[me], offset);
}
int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  return cover("matrix_elementwise_add_by_const", affine_kernel, size_of(output), 1.0f,
               data_of(input), val, data_of(output));
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant

int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  return cover("matrix_elementwise_multiply", binary_kernel, size_of(output), kMultiply,
               data_of(matA), data_of(matB), data_of(output));
}

int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  return cover("matrix_elementwise_multiply_by_const", affine_kernel, size_of(output), val,
               data_of(input), 0.0f, data_of(output));
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply

// Sums in double: slow on a small card, but exact.
__global__ void matmul_kernel(int64_t n, int64_t columns, int64_t depth, const float* a, bool ta,
                              const float* b, bool tb, float* out) {
  const int64_t me = element_index(), rows = n / columns;
  if (me >= n) return;
  const int64_t row = me / columns, column = me % columns;
  double sum = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const double x = ta ? a[k * rows + row] : a[row * depth + k];
    const double y = tb ? b[column * depth + k] : b[k * columns + column];
    sum += x * y;
  }
  out[me] = static_cast<float>(sum);
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
  return cover("matrix_multiply", matmul_kernel, M * N, N, K, data_of(matA), transposeA,
               data_of(matB), transposeB, data_of(matC));
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient

__global__ void relu_kernel(int64_t n, const float* in, float* out) {
  const int64_t me = element_index();
  if (me < n) out[me] = (in[me] + fabsf(in[me])) / 2;
}
int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  return cover("relu", relu_kernel, size_of(output), data_of(input), data_of(output));
}

int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  return cover("relu_gradient", binary_kernel, size_of(output), kGate, data_of(input),
               data_of(in_grad), data_of(output));
}

// ---------------------------------------------------------------------------------------------
// softmax

// An element a thread: each reads the whole row, so nobody waits for anybody.
__global__ void softmax_kernel(int64_t n, int64_t columns, const float* in, float* out) {
  const int64_t me = element_index();
  if (me >= n) return;
  const float* row = in + me / columns * columns;
  float most = row[0];
  for (int64_t j = 1; j < columns; ++j)
    if (row[j] > most) most = row[j];
  // e^(x_j - x) summed is 1 / softmax, but overflows where x is small: so both relative to most.
  double sum = 0;
  for (int64_t j = 0; j < columns; ++j) sum += exp2f((row[j] - most) * 1.44269504f);
  out[me] = exp2f((in[me] - most) * 1.44269504f) / sum;
}
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  return cover("softmax", softmax_kernel, size_of(output), input->shape[1], data_of(input),
               data_of(output));
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

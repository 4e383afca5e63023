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
#include <math.h>

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

// One handle for the whole process; cublasCreate is slow.
static cublasHandle_t the_handle() {
  static cublasHandle_t handle = nullptr;
  if (handle == nullptr && cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) handle = nullptr;
  return handle;
}

#define CUBLAS(call)                                                                 \
  do {                                                                               \
    if ((call) != CUBLAS_STATUS_SUCCESS) return DLSetLastError(#call " failed", -1); \
  } while (0)

__global__ void fill(int n, float value, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}

static void fill_with(float* out, int n, float value) {
  if (n > 0) fill<<<(n + kThreads - 1) / kThreads, kThreads>>>(n, value, out);
}

// ---------------------------------------------------------------------------------------------
// array_set

int DLGpuArraySet(DLArrayHandle arr, float value) {
  if (value == 0 && !signbit(value))
    cudaMemsetAsync(data_of(arr), 0, size_of(arr) * sizeof(float));
  else
    fill_with(data_of(arr), (int)size_of(arr), value);
  return launched("array_set");
}

// Memory that stays, so that a training allocates none; it grows with what is asked for.
static float* scratch(int number, size_t floats) {
  static float* memory[2];
  static size_t size[2];
  if (size[number] < floats) {
    cudaFree(memory[number]);
    size[number] = 0;
    if (cudaMalloc(&memory[number], floats * sizeof(float)) != cudaSuccess) return memory[number] = 0;
    size[number] = floats;
  }
  return memory[number];
}

// ---------------------------------------------------------------------------------------------
// broadcast_to

int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");
  // out = x 1^T for the columns of cuBLAS, which are our rows.
  int columns = (int)size_of(input), copies = (int)output->shape[0];
  if (columns == 0 || copies == 0) return 0;
  float* ones = scratch(0, copies);
  if (!ones) return DLSetLastError("no memory", -1);
  fill_with(ones, copies, 1);
  cudaMemset(data_of(output), 0, size_of(output) * sizeof(float));
  const float alpha = 1;
  cublasStatus_t status = cublasSger(the_handle(), columns, copies, &alpha, data_of(input), 1, ones,
                                     1, data_of(output), columns);
  CUBLAS(status);
  return launched("broadcast_to");
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero

int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));
  // out = A^T 1: as cuBLAS sees it, A is columns x rows.
  if (columns == 0) return 0;
  float* ones = scratch(0, rows);
  if (!ones) return DLSetLastError("no memory", -1);
  fill_with(ones, (int)rows, 1);
  const float alpha = 1, beta = 0;
  cublasStatus_t status =
      cublasSgemv(the_handle(), CUBLAS_OP_N, (int)columns, (int)rows, &alpha, data_of(input),
                  (int)columns, ones, 1, &beta, data_of(output), 1);
  CUBLAS(status);
  return launched("reduce_sum_axis_zero");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant

int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  int n = (int)size_of(output);
  if (n == 0) return 0;
  const float one = 1;
  CUBLAS(cublasSgeam(the_handle(), CUBLAS_OP_N, CUBLAS_OP_N, n, 1, &one, data_of(matA), n, &one,
                     data_of(matB), n, data_of(output), n));
  return launched("matrix_elementwise_add");
}

int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  int n = (int)size_of(output);
  if (n == 0) return 0;
  // y = 1 * x + y with a vector of the constant; an increment of 0 would do as well.
  float* constants = scratch(0, n);
  if (!constants) return DLSetLastError("no memory", -1);
  fill_with(constants, n, val);
  const float one = 1;
  cublasStatus_t status = cublasSaxpy(the_handle(), n, &one, data_of(input), 1, constants, 1);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = cublasScopy(the_handle(), n, constants, 1, data_of(output), 1);
  CUBLAS(status);
  return launched("matrix_elementwise_add_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant

__global__ void multiply(int n, const float* a, const float* b, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] * b[i];
}
int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  int n = (int)size_of(output);
  if (n == 0) return 0;
  if (data_of(output) == data_of(matA) || data_of(output) == data_of(matB)) {
    multiply<<<(n + kThreads - 1) / kThreads, kThreads>>>(n, data_of(matA), data_of(matB),
                                                          data_of(output));
    return launched("matrix_elementwise_multiply");
  }
  CUBLAS(cublasSdgmm(the_handle(), CUBLAS_SIDE_LEFT, n, 1, data_of(matA), n, data_of(matB), 1,
                     data_of(output), n));
  return launched("matrix_elementwise_multiply");
}

int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  int n = (int)size_of(output);
  if (n == 0) return 0;
  if (data_of(output) != data_of(input))
    cudaMemcpyAsync(data_of(output), data_of(input), n * sizeof(float), cudaMemcpyDeviceToDevice);
  CUBLAS(cublasSscal(the_handle(), n, &val, data_of(output), 1));
  return launched("matrix_elementwise_multiply_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply

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
  if (K == 0) {
    cudaMemset(data_of(matC), 0, size_of(matC) * sizeof(float));
    return launched("matrix_multiply");
  }
  // cuBLAS is column-major: what we call C is C^T to it, and C^T = op(B)^T op(A)^T.
  cublasHandle_t handle;
  CUBLAS(cublasCreate(&handle));
  const float alpha = 1.0f, beta = 0.0f;
  cublasStatus_t status =
      cublasSgemm(handle, transposeB ? CUBLAS_OP_T : CUBLAS_OP_N,
                  transposeA ? CUBLAS_OP_T : CUBLAS_OP_N, N, M, K, &alpha, data_of(matB),
                  transposeB ? K : N, data_of(matA), transposeA ? M : K, &beta, data_of(matC), N);
  cublasDestroy(handle);
  CUBLAS(status);
  return launched("matrix_multiply");
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient

__global__ void relu(int n, const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = isnan(in[i]) ? in[i] : fmaxf(in[i], 0.0f);
}
int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  int n = (int)size_of(output);
  if (n > 0) relu<<<(n + kThreads - 1) / kThreads, kThreads>>>(n, data_of(input), data_of(output));
  return launched("relu");
}

__global__ void relu_gradient(int n, const float* in, const float* grad, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = grad[i] * (in[i] > 0);
}
int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  int n = (int)size_of(output);
  if (n > 0)
    relu_gradient<<<(n + kThreads - 1) / kThreads, kThreads>>>(n, data_of(input), data_of(in_grad),
                                                               data_of(output));
  return launched("relu_gradient");
}

// ---------------------------------------------------------------------------------------------
// softmax

// Exponentials of a row by one thread, then the row's sum by cuBLAS.
__global__ void shifted_exp(int rows, int columns, const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  float most = in[(int64_t)i * columns];
  for (int j = 1; j < columns; j++) most = fmaxf(most, in[(int64_t)i * columns + j]);
  for (int j = 0; j < columns; j++)
    out[(int64_t)i * columns + j] = expf(in[(int64_t)i * columns + j] - most);
}

__global__ void divide_rows(int n, int columns, const float* sums, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] /= sums[i / columns];
}
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  int rows = (int)input->shape[0], columns = (int)input->shape[1], n = rows * columns;
  if (n == 0) return 0;
  float *sums = scratch(1, rows), *ones = scratch(0, columns);
  if (!sums || !ones) return DLSetLastError("no memory", -1);
  fill_with(ones, columns, 1);
  shifted_exp<<<(rows + kThreads - 1) / kThreads, kThreads>>>(rows, columns, data_of(input),
                                                              data_of(output));
  const float one = 1, zero = 0;
  cublasStatus_t status = cublasSgemv(the_handle(), CUBLAS_OP_T, columns, rows, &one,
                                      data_of(output), columns, ones, 1, &zero, sums, 1);
  divide_rows<<<(n + kThreads - 1) / kThreads, kThreads>>>(n, columns, sums, data_of(output));
  CUBLAS(status);
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

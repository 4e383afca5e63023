/*!
 * \file gpu_op.cu
 * \brief The kernels of the executor, and the functions that launch them.
 *
 * Arrays are float32, dense and row-major. A launcher checks shapes, launches on the default
 * stream and returns at once; `launched` says whether the launch was accepted. An array of no
 * elements needs no launch: a grid of 0 blocks is an error.
 */
#include <assert.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

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

// My error check, from the lecture slides. I call it after every CUDA call.
#define gpuErrchk(ans)                    \
  {                                       \
    gpuAssert((ans), __FILE__, __LINE__); \
  }
inline void gpuAssert(cudaError_t code, const char* file, int line, bool abort = true) {
  if (code != cudaSuccess) {
    fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
    if (abort) exit(code);
  }
}

// Number of elements in an array.
int count_elements(const DLArrayHandle array) {
  int n = 1;
  for (int i = 0; i < array->ndim; i++) {
    n = n * array->shape[i];
  }
  return n;
}

// ---------------------------------------------------------------------------------------------
// array_set

// Every thread sets one element
__global__ void array_set_kernel(float* array, float value, int n) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  // the last block can be too big
  if (idx < n) {
    array[idx] = value;
  }
}
int DLGpuArraySet(DLArrayHandle arr, float value) {
  int n = count_elements(arr);
  if (n == 0) {
    return 0;
  }
  float* array_data = (float*)arr->data;
  int threads = 1024;
  int blocks = (n + threads - 1) / threads;
  array_set_kernel<<<blocks, threads>>>(array_data, value, n);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
}

// ---------------------------------------------------------------------------------------------
// broadcast_to

// One block. Every thread copies elements idx, idx + 1024, idx + 2048 ... of the input
// to all places in the output.
__global__ void broadcast_to_kernel(int copies, int n, const float* input, float* output) {
  assert(blockDim.x == 1024);
  for (int idx = threadIdx.x; idx < n; idx += 1024) {
    for (int i = 0; i < copies; i++) {
      output[i * n + idx] = input[idx];
    }
  }
}
int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");
  int n = count_elements(input);
  int copies = output->shape[0];
  const float* input_data = (const float*)input->data;
  float* output_data = (float*)output->data;
  broadcast_to_kernel<<<1, 1024>>>(copies, n, input_data, output_data);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero

// Every thread adds up one column
__global__ void reduce_sum_kernel(int nrow, int ncol, const float* input, float* output) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= ncol) {
    return;
  }
  output[col] = 0;
  for (int row = 0; row < nrow; row++) {
    output[col] = output[col] + input[row * ncol + col];
  }
}
int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));
  const float* input_data = (const float*)input->data;
  float* output_data = (float*)output->data;
  dim3 threads;
  threads.x = 1024;
  dim3 blocks;
  blocks.x = (columns + 1023) / 1024;
  reduce_sum_kernel<<<blocks, threads>>>(rows, columns, input_data, output_data);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant

__global__ void matrix_elementwise_add_kernel(int n, const float* a, const float* b, float* c) {
  // One block with 1024 threads, each thread makes steps of 1024
  int idx = threadIdx.x;
  while (idx < n) {
    c[idx] = a[idx] + b[idx];
    idx = idx + 1024;
  }
}
int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  int n = count_elements(output);
  matrix_elementwise_add_kernel<<<1, 1024>>>(n, (const float*)matA->data, (const float*)matB->data,
                                             (float*)output->data);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
}

__global__ void matrix_elementwise_add_by_const_kernel(int n, const float* a, float val, float* c) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < n) {
    c[idx] = a[idx] + val;
  }
}
int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  int n = count_elements(input);
  int n2 = count_elements(output);
  assert(n == n2);
  int blocks = n / 1024;
  if (n % 1024 != 0) {
    blocks++;
  }
  matrix_elementwise_add_by_const_kernel<<<blocks, 1024>>>(n2, (const float*)input->data, val,
                                                           (float*)output->data);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant

__global__ void matrix_elementwise_multiply_kernel(int n, const float* a, const float* b,
                                                   float* c) {
  // Every thread takes a piece of neighbours
  int piece = (n + blockDim.x - 1) / blockDim.x;
  int begin = threadIdx.x * piece;
  int end = begin + piece;
  if (end > n) {
    end = n;
  }
  for (int i = begin; i < end; i++) {
    c[i] = a[i] * b[i];
  }
}
int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  int n = count_elements(output);
  matrix_elementwise_multiply_kernel<<<1, 1024>>>(n, (const float*)matA->data,
                                                  (const float*)matB->data, (float*)output->data);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
}

__global__ void matrix_multiply_by_const_kernel(int n, const float* a, float val, float* c) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < n) {
    c[idx] = a[idx] * val;
  }
}
int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  int n = count_elements(output);
  int blocks = ceil(n / 1024.0);
  matrix_multiply_by_const_kernel<<<blocks, 1024>>>(n, (const float*)input->data, val,
                                                    (float*)output->data);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply

// Every thread computes one element of C
__global__ void matrix_multiply_kernel(int m, int n, int k, const float* a, int transA,
                                       const float* b, int transB, float* c) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float sum = 0.0;
    for (int i = 0; i < k; i++) {
      float x, y;
      if (transA == 1) {
        x = a[i * m + row];
      } else {
        x = a[row * k + i];
      }
      if (transB == 1) {
        y = b[col * k + i];
      } else {
        y = b[i * n + col];
      }
      sum = sum + x * y;
    }
    c[row * n + col] = sum;
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
  const float* a = (const float*)matA->data;
  const float* b = (const float*)matB->data;
  float* c = (float*)matC->data;
  // 32 * 32 = 1024 threads
  dim3 threads(32, 32);
  dim3 blocks((N + 31) / 32, (M + 31) / 32);
  matrix_multiply_kernel<<<blocks, threads>>>(M, N, K, a, transposeA ? 1 : 0, b, transposeB ? 1 : 0,
                                              c);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient

__global__ void relu_kernel(int n, const float* input, float* output) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < n) {
    if (input[idx] < 0) {
      output[idx] = 0;
    } else {
      output[idx] = input[idx];
    }
  }
}
int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  int n = count_elements(output);
  relu_kernel<<<(n + 1023) / 1024, 1024>>>(n, (const float*)input->data, (float*)output->data);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
}

__global__ void relu_gradient_kernel(int n, const float* input, const float* in_grad,
                                     float* output) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < n) {
    if (input[idx] > 0) {
      output[idx] = in_grad[idx];
    } else {
      output[idx] = 0;
    }
  }
}
int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  int n = count_elements(output);
  relu_gradient_kernel<<<(n + 1023) / 1024, 1024>>>(
      n, (const float*)input->data, (const float*)in_grad->data, (float*)output->data);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
}

// ---------------------------------------------------------------------------------------------
// softmax

// y = inputs[0]
// First find the max, then the sum of e^(x - max), then divide. One thread for one row.
__global__ void softmax_kernel(int nrow, int ncol, const float* input, float* output) {
  int y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= nrow) {
    return;
  }
  // move the pointers to my row
  input += y * ncol;
  output += y * ncol;
  float maxval = *input;
  // Find max for a row.
  for (int x = 1; x < ncol; ++x) {
    maxval = max(maxval, input[x]);
  }
  // Deduct by max for a row, and raise to exp.
  float sum = 0;
  for (int x = 0; x < ncol; ++x) {
    sum += exp(input[x] - maxval);
  }
  for (int x = 0; x < ncol; ++x) {
    output[x] = exp(input[x] - maxval) / sum;
  }
}
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  int nrow = input->shape[0];
  int ncol = input->shape[1];
  assert(nrow > 0);
  assert(ncol > 0);
  dim3 threads;
  int blocks = 1;
  if (nrow <= 1024) {
    threads.x = nrow;
  } else {
    threads.x = 1024;
    blocks = (nrow + 1023) / 1024;
  }
  softmax_kernel<<<blocks, threads>>>(nrow, ncol, (const float*)input->data, (float*)output->data);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaDeviceSynchronize());
  return 0;
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

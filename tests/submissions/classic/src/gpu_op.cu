#include "./c_runtime_api.h"
#include <cassert>
#include <cstdio>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#define THREADS_PER_BLOCK 1024
#define ROWS_PER_BLOCK 512
#define NUM_BLOCKS(n, threads) (((n) + (threads) - 1) / (threads))

// number of elements of an array
static int get_size(const DLArrayHandle arr) {
  int size = 1;
  for (int i = 0; i < arr->ndim; i++) {
    size *= arr->shape[i];
  }
  return size;
}

__global__ void array_set_kernel(int n, float *arr, float value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    arr[i] = value;
  }
}

// n: size of the output, m: size of the input
__global__ void broadcast_to_kernel(int n, int m, const float *input, float *output) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    output[i] = input[i % m];
  }
}

// n: size of the output, rows: how many of them are summed
__global__ void reduce_sum_axis_zero_kernel(int n, int rows, const float *input, float *output) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0;
    for (int r = 0; r < rows; r++) {
      sum += input[r * n + i];
    }
    output[i] = sum;
  }
}

__global__ void add_kernel(int n, const float *a, const float *b, float *c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] + b[i];
  }
}

__global__ void add_const_kernel(int n, const float *input, float val, float *output) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    output[i] = input[i] + val;
  }
}

__global__ void mul_kernel(int n, const float *a, const float *b, float *c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] * b[i];
  }
}

__global__ void mul_const_kernel(int n, const float *input, float val, float *output) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    output[i] = input[i] * val;
  }
}

__global__ void relu_kernel(int n, const float *input, float *output) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    output[i] = input[i] > 0 ? input[i] : 0;
  }
}

__global__ void relu_gradient_kernel(int n, const float *input, const float *in_grad,
                                     float *output) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    output[i] = input[i] > 0 ? in_grad[i] : 0;
  }
}

// one thread for each row
__global__ void softmax_kernel(int nrow, int ncol, const float *input, float *output) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= nrow) {
    return;
  }
  input += row * ncol;
  output += row * ncol;
  float maxval = input[0];
  for (int j = 1; j < ncol; j++) {
    maxval = max(maxval, input[j]);
  }
  float sum = 0;
  for (int j = 0; j < ncol; j++) {
    output[j] = exp(input[j] - maxval);
    sum += output[j];
  }
  for (int j = 0; j < ncol; j++) {
    output[j] /= sum;
  }
}

// one block, thread i computes the loss of row i, then thread 0 takes the mean
__global__ void softmax_cross_entropy_kernel(int nrow, int ncol, const float *y,
                                             const float *y_, float *output) {
  extern __shared__ float row_loss[];
  int row = threadIdx.x;
  if (row < nrow) {
    y += row * ncol;
    y_ += row * ncol;
    float maxval = y[0];
    for (int j = 1; j < ncol; j++) {
      maxval = max(maxval, y[j]);
    }
    float sum = 0;
    for (int j = 0; j < ncol; j++) {
      sum += exp(y[j] - maxval);
    }
    float logsum = log(sum);
    float loss = 0;
    for (int j = 0; j < ncol; j++) {
      loss -= y_[j] * (y[j] - maxval - logsum);
    }
    row_loss[row] = loss;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float mean = 0;
    for (int i = 0; i < nrow; i++) {
      mean += row_loss[i];
    }
    output[0] = mean / nrow;
  }
}

int DLGpuArraySet(DLArrayHandle arr, float value) {
  int n = get_size(arr);
  float *data = (float *)arr->data;
  array_set_kernel<<<NUM_BLOCKS(n, THREADS_PER_BLOCK), THREADS_PER_BLOCK>>>(n, data, value);
  return 0;
}

int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  assert(output->ndim == input->ndim + 1);
  for (int i = 0; i < input->ndim; i++) {
    assert(input->shape[i] == output->shape[i + 1]);
  }
  int n = get_size(output);
  int m = get_size(input);
  const float *in = (const float *)input->data;
  float *out = (float *)output->data;
  broadcast_to_kernel<<<NUM_BLOCKS(n, THREADS_PER_BLOCK), THREADS_PER_BLOCK>>>(n, m, in, out);
  return 0;
}

int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  for (int i = 1; i < input->ndim; i++) {
    assert(input->shape[i] == output->shape[i - 1]);
  }
  int n = get_size(output);
  int rows = input->shape[0];
  const float *in = (const float *)input->data;
  float *out = (float *)output->data;
  reduce_sum_axis_zero_kernel<<<NUM_BLOCKS(n, THREADS_PER_BLOCK), THREADS_PER_BLOCK>>>(
      n, rows, in, out);
  return 0;
}

int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  int n = get_size(output);
  assert(get_size(matA) == n);
  assert(get_size(matB) == n);
  const float *a = (const float *)matA->data;
  const float *b = (const float *)matB->data;
  float *c = (float *)output->data;
  add_kernel<<<NUM_BLOCKS(n, THREADS_PER_BLOCK), THREADS_PER_BLOCK>>>(n, a, b, c);
  return 0;
}

int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val,
                                     DLArrayHandle output) {
  assert(input->shape[0] == output->shape[0]);
  int n = get_size(input);
  const float *in = (const float *)input->data;
  float *out = (float *)output->data;
  add_const_kernel<<<NUM_BLOCKS(n, THREADS_PER_BLOCK), THREADS_PER_BLOCK>>>(n, in, val, out);
  return 0;
}

int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  int n = get_size(output);
  assert(get_size(matA) == n);
  assert(get_size(matB) == n);
  const float *a = (const float *)matA->data;
  const float *b = (const float *)matB->data;
  float *c = (float *)output->data;
  mul_kernel<<<NUM_BLOCKS(n, THREADS_PER_BLOCK), THREADS_PER_BLOCK>>>(n, a, b, c);
  return 0;
}

int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  assert(input->shape[0] == output->shape[0]);
  int n = get_size(input);
  const float *in = (const float *)input->data;
  float *out = (float *)output->data;
  mul_const_kernel<<<NUM_BLOCKS(n, THREADS_PER_BLOCK), THREADS_PER_BLOCK>>>(n, in, val, out);
  return 0;
}

int DLGpuMatrixMultiply(const DLArrayHandle matA, bool transposeA, const DLArrayHandle matB,
                        bool transposeB, DLArrayHandle matC) {
  assert(matA->ndim == 2);
  assert(matB->ndim == 2);
  assert(matC->ndim == 2);
  int m = matC->shape[0];
  int n = matC->shape[1];
  int k = transposeA ? matA->shape[0] : matA->shape[1];
  assert(k == (transposeB ? matB->shape[1] : matB->shape[0]));

  cublasHandle_t handle;
  cublasCreate(&handle);
  // cuBLAS is column-major and sees every matrix transposed: C^T = op(B)^T * op(A)^T
  cublasOperation_t opA = transposeA ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t opB = transposeB ? CUBLAS_OP_T : CUBLAS_OP_N;
  float alpha = 1.0f;
  float beta = 0.0f;
  cublasSgemm(handle, opB, opA, n, m, k, &alpha,
              (const float *)matB->data, matB->shape[1],
              (const float *)matA->data, matA->shape[1], &beta,
              (float *)matC->data, n);
  cublasDestroy(handle);
  return 0;
}

int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  assert(input->shape[0] == output->shape[0]);
  int n = get_size(input);
  const float *in = (const float *)input->data;
  float *out = (float *)output->data;
  relu_kernel<<<NUM_BLOCKS(n, THREADS_PER_BLOCK), THREADS_PER_BLOCK>>>(n, in, out);
  return 0;
}

int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  assert(input->shape[0] == in_grad->shape[0]);
  assert(input->shape[0] == output->shape[0]);
  int n = get_size(input);
  const float *in = (const float *)input->data;
  const float *grad = (const float *)in_grad->data;
  float *out = (float *)output->data;
  relu_gradient_kernel<<<NUM_BLOCKS(n, THREADS_PER_BLOCK), THREADS_PER_BLOCK>>>(
      n, in, grad, out);
  return 0;
}

int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  assert(input->ndim == 2);
  assert(output->ndim == 2);
  assert(input->shape[0] == output->shape[0]);
  assert(input->shape[1] == output->shape[1]);
  int nrow = input->shape[0];
  int ncol = input->shape[1];
  const float *in = (const float *)input->data;
  float *out = (float *)output->data;
  softmax_kernel<<<NUM_BLOCKS(nrow, ROWS_PER_BLOCK), ROWS_PER_BLOCK>>>(nrow, ncol, in, out);
  return 0;
}

int DLGpuSoftmaxCrossEntropy(const DLArrayHandle input_a, const DLArrayHandle input_b,
                             DLArrayHandle output) {
  assert(input_a->ndim == 2);
  assert(input_b->ndim == 2);
  assert(output->ndim == 1);
  assert(input_a->shape[0] == input_b->shape[0]);
  assert(input_a->shape[1] == input_b->shape[1]);
  int nrow = input_a->shape[0];
  int ncol = input_a->shape[1];
  const float *y = (const float *)input_a->data;
  const float *y_ = (const float *)input_b->data;
  float *out = (float *)output->data;
  // a thread for each row, all in one block because they share the sum
  softmax_cross_entropy_kernel<<<1, nrow, nrow * sizeof(float)>>>(nrow, ncol, y, y_, out);
  cudaThreadSynchronize();
  return 0;
}

/*!
 * \file blocks.cu
 * \brief Four plain kernels that are launched with any number of threads a block.
 *
 * What a block's size changes: how many blocks a multiprocessor holds, how long a row is shared,
 * and how many threads wait at a barrier. The kernels are the first ones that a course writes.
 */
#include <cuda_runtime.h>

namespace {

/*! \brief out = a + b. grid: a thread an element. cost: 12 bytes an element. */
__global__ void add_kernel(int n, const float* a, const float* b, float* out) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < static_cast<long long>(n) * n) out[i] = a[i] + b[i];
}

/*! \brief The sum, or the largest, of what all threads of a block have; every thread gets it. */
template <class Way>
__device__ float of_block(float value, Way both) {
  extern __shared__ float parts[];
  parts[threadIdx.x] = value;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half)
      parts[threadIdx.x] = both(parts[threadIdx.x], parts[threadIdx.x + half]);
  }
  __syncthreads();
  const float found = parts[0];
  __syncthreads();  // who is fast may write parts again
  return found;
}

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct Largest {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

/*! \brief out[row] = sum of a row. grid: a block a row; threads: a power of two. cost: 4 bytes an
 * element. */
__global__ void sum_kernel(int n, const float* a, const float*, float* out) {
  const float* row = a + static_cast<long long>(blockIdx.x) * n;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += row[i];
  sum = of_block(sum, Sum());
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

/*! \brief out = softmax of each row. grid: a block a row; threads: a power of two. cost: 8 bytes an
 * element, if a row stays in the cache. */
__global__ void softmax_kernel(int n, const float* a, const float*, float* out) {
  const long long begin = static_cast<long long>(blockIdx.x) * n;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) most = Largest()(most, a[begin + i]);
  most = of_block(most, Largest());
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(a[begin + i] - most);
  sum = of_block(sum, Sum());
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[begin + i] = expf(a[begin + i] - most) / sum;
}

/*! \brief out = a @ b. grid: a thread an element, rows first. cost: 2n operations an element. */
__global__ void matmul_kernel(int n, const float* a, const float* b, float* out) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<long long>(n) * n) return;
  const int row = static_cast<int>(i / n), column = static_cast<int>(i % n);
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  out[i] = sum;
}

typedef void (*Kernel)(int, const float*, const float*, float*);
Kernel const kKernels[] = {add_kernel, sum_kernel, softmax_kernel, matmul_kernel};

}  // namespace

/*!
 * \brief Launches a kernel, by its number above.
 * \return 0, or the number of the error.
 */
extern "C" int run_blocks(int kernel, int n, int threads, const float* a, const float* b,
                          float* out) {
  const bool by_rows = kernel == 1 || kernel == 2;
  const long long elements = static_cast<long long>(n) * n;
  const int blocks = by_rows ? n : static_cast<int>((elements + threads - 1) / threads);
  const size_t shared = by_rows ? threads * sizeof(float) : 0;
  if (kernel == 0) add_kernel<<<blocks, threads, shared>>>(n, a, b, out);
  if (kernel == 1) sum_kernel<<<blocks, threads, shared>>>(n, a, b, out);
  if (kernel == 2) softmax_kernel<<<blocks, threads, shared>>>(n, a, b, out);
  if (kernel == 3) matmul_kernel<<<blocks, threads, shared>>>(n, a, b, out);
  return static_cast<int>(cudaGetLastError());
}

/*! \brief What a kernel takes: registers of a thread, static shared memory of a block in bytes. */
extern "C" int attributes_of_blocks(int kernel, int* registers, int* shared) {
  cudaFuncAttributes found;
  const cudaError_t error = cudaFuncGetAttributes(&found, kKernels[kernel]);
  if (error != cudaSuccess) return static_cast<int>(error);
  *registers = found.numRegs;
  *shared = static_cast<int>(found.sharedSizeBytes);
  return 0;
}

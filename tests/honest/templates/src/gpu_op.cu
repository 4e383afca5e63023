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

#include <type_traits>

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

namespace functors {

struct Plus {
  template <typename T>
  __host__ __device__ constexpr T operator()(T a, T b) const {
    return a + b;
  }
};

struct Times {
  template <typename T>
  __host__ __device__ constexpr T operator()(T a, T b) const {
    return a * b;
  }
};

struct Larger {
  template <typename T>
  __host__ __device__ constexpr T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

// f(., value)
template <typename Function>
struct Bound {
  Function function;
  float value;
  __device__ float operator()(float x) const { return function(x, value); }
};

template <typename Function>
Bound<Function> bind(float value) {
  return {Function{}, value};
}

struct Gate {
  __device__ float operator()(float x, float grad) const { return x > 0.f ? grad : 0.f; }
};

}  // namespace functors

// output[i] = function(inputs[i]...)
template <typename Function, typename... Inputs>
__global__ void map_kernel(int64_t n, Function function, float* output, const Inputs*... inputs) {
  static_assert(sizeof...(Inputs) >= 1, "a map has an input");
  auto i = element_index();
  if (i < n) output[i] = function(inputs[i]...);
}

template <int Threads = kThreads, typename Function, typename... Arrays>
static int map(const char* name, Function function, DLArrayHandle output, const Arrays*... inputs) {
  const auto n = size_of(output);
  if (n == 0) return 0;
  map_kernel<<<blocks_for(n, Threads), Threads>>>(n, function, data_of(output),
                                                  static_cast<const float*>(data_of(inputs))...);
  return launched(name);
}

// f(... f(f(start, get(0)), get(1)) ..., get(n - 1))
template <typename T, typename Function, typename Get>
__device__ T fold(int64_t n, T start, Function function, Get get) {
  for (int64_t i = 0; i < n; ++i) start = function(start, get(i));
  return start;
}

// ---------------------------------------------------------------------------------------------
// array_set

template <typename T>
__global__ void fill_kernel(int64_t n, T value, T* out) {
  if (auto i = element_index(); i < n) out[i] = value;
}
int DLGpuArraySet(DLArrayHandle arr, float value) {
  const auto n = size_of(arr);
  if (n == 0) return 0;
  fill_kernel<float><<<blocks_for(n, kThreads), kThreads>>>(n, value, data_of(arr));
  return launched("array_set");
}

// ---------------------------------------------------------------------------------------------
// broadcast_to

template <typename Index>
__global__ void repeat_kernel(Index n, Index size, const float* in, float* out) {
  const Index i = static_cast<Index>(element_index());
  if (i < n) out[i] = in[i % size];
}
int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");
  const auto n = size_of(output), size = size_of(input);
  if (n == 0) return 0;
  if (n < std::numeric_limits<int>::max() - kThreads)
    repeat_kernel<int><<<blocks_for(n, kThreads), kThreads>>>(
        static_cast<int>(n), static_cast<int>(size), data_of(input), data_of(output));
  else
    repeat_kernel<int64_t>
        <<<blocks_for(n, kThreads), kThreads>>>(n, size, data_of(input), data_of(output));
  return launched("broadcast_to");
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero

template <typename Function>
__global__ void column_fold_kernel(int64_t rows, int64_t columns, Function function,
                                   const float* in, float* out) {
  const auto j = element_index();
  if (j >= columns) return;
  out[j] = fold(rows, 0.f, function, [=](int64_t i) { return in[i * columns + j]; });
}
int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));
  if (columns == 0) return 0;
  column_fold_kernel<<<blocks_for(columns, kThreads), kThreads>>>(rows, columns, functors::Plus{},
                                                                  data_of(input), data_of(output));
  return launched("reduce_sum_axis_zero");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant

int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  return map("matrix_elementwise_add", functors::Plus{}, output, matA, matB);
}

int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  return map("matrix_elementwise_add_by_const", functors::bind<functors::Plus>(val), output, input);
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant

int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  return map("matrix_elementwise_multiply", functors::Times{}, output, matA, matB);
}

int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  return map("matrix_elementwise_multiply_by_const", functors::bind<functors::Times>(val), output,
             input);
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply

// A matrix in memory, transposed or not.
template <bool Transposed>
struct Matrix {
  const float* data;
  int64_t rows, columns;  // as it is used

  __device__ float at(int64_t i, int64_t j) const {
    if constexpr (Transposed)
      return data[j * rows + i];
    else
      return data[i * columns + j];
  }
  __device__ float operator()(int64_t i, int64_t j) const {
    return i < rows && j < columns ? at(i, j) : 0.f;
  }
};

template <int Tile, bool TA, bool TB>
__global__ void product_kernel(Matrix<TA> a, Matrix<TB> b, float* out) {
  __shared__ float tile_a[Tile][Tile + 1];
  __shared__ float tile_b[Tile][Tile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int64_t row = int64_t{blockIdx.y} * Tile + y, column = int64_t{blockIdx.x} * Tile + x;
  float sum = 0;
  for (int64_t k = 0; k < a.columns; k += Tile) {
    tile_a[y][x] = a(row, k + x);
    tile_b[y][x] = b(k + y, column);
    __syncthreads();
    sum += fold(Tile, 0.f, functors::Plus{}, [&](int t) { return tile_a[y][t] * tile_b[t][x]; });
    __syncthreads();
  }
  if (row < a.rows && column < b.columns) out[row * b.columns + column] = sum;
}

template <bool TA, bool TB>
static void product(int64_t M, int64_t N, int64_t K, const float* a, const float* b, float* c) {
  constexpr int tile = 16;
  const dim3 grid(blocks_for(N, tile), blocks_for(M, tile));
  product_kernel<tile><<<grid, dim3(tile, tile)>>>(Matrix<TA>{a, M, K}, Matrix<TB>{b, K, N}, c);
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
  using Product = void (*)(int64_t, int64_t, int64_t, const float*, const float*, float*);
  static constexpr Product products[2][2] = {{product<false, false>, product<false, true>},
                                             {product<true, false>, product<true, true>}};
  products[transposeA][transposeB](M, N, K, data_of(matA), data_of(matB), data_of(matC));
  return launched("matrix_multiply");
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient

int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  return map("relu", functors::bind<functors::Larger>(0.f), output, input);
}

int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  return map("relu_gradient", functors::Gate{}, output, input, in_grad);
}

// ---------------------------------------------------------------------------------------------
// softmax

template <typename T>
__global__ void softmax_kernel(int64_t rows, int64_t columns, const T* in, T* out) {
  const auto row = element_index();
  if (row >= rows) return;
  in += row * columns;
  out += row * columns;
  const T most = fold(columns, T(-INFINITY), functors::Larger{},
                      [in](int64_t j) { return in[j]; });
  auto power = [in, most](int64_t j) { return exp(in[j] - most); };
  const T sum = fold(columns, T{}, functors::Plus{}, power);
  for (int64_t j = 0; j < columns; ++j) out[j] = power(j) / sum;
}
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  const auto rows = input->shape[0], columns = input->shape[1];
  if (rows == 0) return 0;
  softmax_kernel<float>
      <<<blocks_for(rows, kThreads), kThreads>>>(rows, columns, data_of(input), data_of(output));
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

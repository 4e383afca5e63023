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
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

namespace dlsys {
namespace host {

// Device memory that is asked for once and grows when more is needed; freed at the end.
class Scratch {
 public:
  static float* get(const std::string& name, size_t floats) {
    std::unique_ptr<Scratch>& mine = all_[name];
    if (!mine) mine.reset(new Scratch);
    if (mine->size_ < floats) mine->grow(floats);
    return mine->data_;
  }
  ~Scratch() {
    if (data_) cudaFree(data_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  Scratch() = default;
  void grow(size_t floats) {
    if (data_) cudaFree(data_);
    data_ = nullptr;
    size_ = 0;
    if (cudaMalloc(reinterpret_cast<void**>(&data_), floats * sizeof(float)) == cudaSuccess)
      size_ = floats;
  }
  float* data_ = nullptr;
  size_t size_ = 0;
  static std::map<std::string, std::unique_ptr<Scratch>> all_;
};
std::map<std::string, std::unique_ptr<Scratch>> Scratch::all_;

// A launch that covers n elements; remembers what it has computed.
class Launch {
 public:
  explicit Launch(int64_t n) {
    auto found = known_.find(n);
    if (found == known_.end()) {
      int threads = n < max_threads ? round_up(static_cast<int>(n), 32) : max_threads;
      threads = std::max(threads, 32);
      found = known_.emplace(n, std::make_pair(blocks_for(n, threads), threads)).first;
    }
    blocks = found->second.first;
    threads = found->second.second;
    ++count;
  }
  static long count;
  unsigned blocks;
  int threads;

 private:
  static const int max_threads = 512;
  static int round_up(int n, int unit) { return (n + unit - 1) / unit * unit; }
  static std::map<int64_t, std::pair<unsigned, int>> known_;
};
long Launch::count = 0;
std::map<int64_t, std::pair<unsigned, int>> Launch::known_;

}  // namespace host

namespace device {

class Span {
 public:
  __host__ __device__ Span(float* data, int64_t size) : data_(data), size_(size) {}
  explicit Span(const DLArray* array) : Span(data_of(array), size_of(array)) {}
  __device__ float& operator[](int64_t i) { return data_[i]; }
  __device__ float operator[](int64_t i) const { return data_[i]; }
  __host__ __device__ int64_t size() const { return size_; }
  __host__ __device__ bool empty() const { return data_ == nullptr; }
  __device__ Span part(int64_t i, int64_t size) const { return Span(data_ + i * size, size); }
  __device__ float* begin() const { return data_; }
  __device__ float* end() const { return data_ + size_; }

 private:
  float* data_;
  int64_t size_;
};

// What stays the same for all threads of a kernel by a constant.
__constant__ float scalar;

struct Exponent {
  static __device__ float of(float x, float most) { return expf(x - most); }
};

}  // namespace device
}  // namespace dlsys

using dlsys::device::Span;
using dlsys::host::Launch;
using dlsys::host::Scratch;

// ---------------------------------------------------------------------------------------------
// array_set

namespace dlsys {
namespace kernels {
__global__ void array_set(Span out, float value) {
  const int64_t i = element_index();
  if (i < out.size()) out[i] = value;
}
}  // namespace kernels
}  // namespace dlsys
int DLGpuArraySet(DLArrayHandle arr, float value) {
  Span out(arr);
  if (out.size() == 0) return 0;
  Launch launch(out.size());
  dlsys::kernels::array_set<<<launch.blocks, launch.threads>>>(out, value);
  return launched("array_set");
}

// ---------------------------------------------------------------------------------------------
// broadcast_to

int DLGpuBroadcastTo(const DLArrayHandle input, DLArrayHandle output) {
  bool is_tile = output->ndim == input->ndim + 1;
  for (int i = 0; is_tile && i < input->ndim; ++i)
    is_tile = output->shape[i + 1] == input->shape[i];
  REQUIRE(is_tile, "broadcast_to: " + shape_of(input) + " to " + shape_of(output) +
                       "; the output must have one more axis, in front");
  // Copies of copies: 1, 2, 4, ... rows at a time, on the device.
  const size_t row = size_of(input), rows = output->shape[0];
  if (row * rows == 0) return 0;
  float* out = data_of(output);
  cudaMemcpyAsync(out, data_of(input), row * sizeof(float), cudaMemcpyDeviceToDevice, 0);
  for (size_t done = 1; done < rows; done *= 2)
    cudaMemcpyAsync(out + done * row, out, std::min(done, rows - done) * row * sizeof(float),
                    cudaMemcpyDefault);
  return launched("broadcast_to");
}

// ---------------------------------------------------------------------------------------------
// reduce_sum_axis_zero

namespace dlsys {
namespace kernels {
// partial[s, j] = sum over the rows s, s + slices, ...
__global__ void slice_sums(int64_t rows, int64_t columns, int64_t slices, const Span in,
                           Span partial) {
  const int64_t i = element_index();
  if (i >= slices * columns) return;
  const int64_t slice = i / columns, j = i % columns;
  float sum = 0;
  for (int64_t r = slice; r < rows; r += slices) sum += in[r * columns + j];
  partial[i] = sum;
}
}  // namespace kernels
}  // namespace dlsys
int DLGpuReduceSumAxisZero(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim > 0, "reduce_sum_axis_zero: the input has no axis");
  int64_t rows = input->shape[0], columns = size_of(output);
  REQUIRE(rows * columns == size_of(input),
          "reduce_sum_axis_zero: " + shape_of(input) + " does not sum to " + shape_of(output));
  if (columns == 0) return 0;
  // As many slices as there is work for, fewer and fewer until one is left.
  std::vector<int64_t> steps;
  for (int64_t slices = rows / 16; slices > 1; slices /= 16) steps.push_back(slices);
  steps.push_back(1);
  Span from(input);
  int64_t left = rows;
  for (size_t s = 0; s < steps.size(); ++s) {
    const bool last = s + 1 == steps.size();
    const int64_t n = steps[s] * columns;
    Span to(last ? data_of(output) : Scratch::get(s % 2 ? "odd" : "even", n), n);
    if (to.empty()) return DLSetLastError("reduce_sum: no memory", -1);
    Launch launch(n);
    dlsys::kernels::slice_sums<<<launch.blocks, launch.threads>>>(left, columns, steps[s], from,
                                                                  to);
    from = to;
    left = steps[s];
  }
  return launched("reduce_sum_axis_zero");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_add, by arrays and by a constant

namespace dlsys {
namespace kernels {
__global__ void add(const Span a, const Span b, Span out) {
  const int64_t i = element_index();
  if (i < out.size()) out[i] = a[i] + b[i];
}
}  // namespace kernels
}  // namespace dlsys
int DLGpuMatrixElementwiseAdd(const DLArrayHandle matA, const DLArrayHandle matB,
                              DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_add: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  Span out(output);
  if (out.size() == 0) return 0;
  Launch launch(out.size());
  dlsys::kernels::add<<<launch.blocks, launch.threads>>>(Span(matA), Span(matB), out);
  return launched("matrix_elementwise_add");
}

namespace dlsys {
namespace kernels {
__global__ void add_scalar(const Span in, Span out) {
  const int64_t i = element_index();
  if (i < out.size()) out[i] = in[i] + device::scalar;
}
}  // namespace kernels
}  // namespace dlsys
int DLGpuMatrixElementwiseAddByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_add_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  Span out(output);
  if (out.size() == 0) return 0;
  cudaMemcpyToSymbol(dlsys::device::scalar, &val, sizeof(val));
  Launch launch(out.size());
  dlsys::kernels::add_scalar<<<launch.blocks, launch.threads>>>(Span(input), out);
  return launched("matrix_elementwise_add_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_elementwise_multiply, by arrays and by a constant

namespace dlsys {
namespace kernels {
__global__ void multiply(const Span a, const Span b, Span out) {
  const int64_t i = element_index();
  if (i < out.size()) out[i] = a[i] * b[i];
}
}  // namespace kernels
}  // namespace dlsys
int DLGpuMatrixElementwiseMultiply(const DLArrayHandle matA, const DLArrayHandle matB,
                                   DLArrayHandle output) {
  REQUIRE(same_shape(matA, matB) && same_shape(matA, output),
          "matrix_elementwise_multiply: shapes differ: A is " + shape_of(matA) + ", B is " +
              shape_of(matB) + ", the output is " + shape_of(output));
  Span out(output);
  if (out.size() == 0) return 0;
  Launch launch(out.size());
  dlsys::kernels::multiply<<<launch.blocks, launch.threads>>>(Span(matA), Span(matB), out);
  return launched("matrix_elementwise_multiply");
}

namespace dlsys {
namespace kernels {
__global__ void multiply_scalar(const Span in, const float* factor, Span out) {
  const int64_t i = element_index();
  if (i < out.size()) out[i] = in[i] * *factor;
}
}  // namespace kernels
}  // namespace dlsys
int DLGpuMatrixMultiplyByConst(const DLArrayHandle input, float val, DLArrayHandle output) {
  REQUIRE(same_shape(input, output),
          "matrix_elementwise_multiply_by_const: shapes differ: the input is " + shape_of(input) +
              ", the output is " + shape_of(output));
  Span out(output);
  if (out.size() == 0) return 0;
  float* factor = Scratch::get("factor", 1);
  if (factor == nullptr) return DLSetLastError("multiply_by_const: no memory", -1);
  cudaMemcpy(factor, &val, sizeof(float), cudaMemcpyHostToDevice);
  Launch launch(out.size());
  dlsys::kernels::multiply_scalar<<<launch.blocks, launch.threads>>>(Span(input), factor, out);
  return launched("matrix_elementwise_multiply_by_const");
}

// ---------------------------------------------------------------------------------------------
// matrix_multiply

namespace dlsys {
namespace kernels {
__global__ void transpose(int64_t rows, int64_t columns, const Span in, Span out) {
  const int64_t i = element_index();
  if (i >= rows * columns) return;
  out[i % columns * rows + i / columns] = in[i];
}

// A is M x K; B lies transposed, N x K: both rows are read from left to right.
__global__ void rows_times_rows(int64_t M, int64_t N, int64_t K, const Span a, const Span b,
                                Span out) {
  const int64_t i = element_index();
  if (i >= M * N) return;
  const Span x = a.part(i / N, K), y = b.part(i % N, K);
  float sum = 0;
  for (int64_t k = 0; k < K; ++k) sum += x[k] * y[k];
  out[i] = sum;
}
}  // namespace kernels

class Transposer {
 public:
  // `matrix` or a transposed copy of it, in memory that belongs to `name`.
  static Span of(const DLArray* matrix, bool wanted, const char* name) {
    if (!wanted || size_of(matrix) == 0) return Span(matrix);
    Span copy(Scratch::get(name, size_of(matrix)), size_of(matrix));
    Launch launch(copy.size());
    kernels::transpose<<<launch.blocks, launch.threads>>>(matrix->shape[0], matrix->shape[1],
                                                          Span(matrix), copy);
    return copy;
  }
};
}  // namespace dlsys
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
  Span a = dlsys::Transposer::of(matA, transposeA, "A");
  Span b = dlsys::Transposer::of(matB, !transposeB, "B");
  Launch launch(M * N);
  dlsys::kernels::rows_times_rows<<<launch.blocks, launch.threads>>>(M, N, K, a, b, Span(matC));
  return launched("matrix_multiply");
}

// ---------------------------------------------------------------------------------------------
// relu and its gradient

namespace dlsys {
namespace kernels {
__global__ void relu(const Span in, Span out) {
  const int64_t i = element_index();
  if (i < out.size()) out[i] = in[i] < 0 ? 0 : in[i];
}
}  // namespace kernels
}  // namespace dlsys
int DLGpuRelu(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(same_shape(input, output), "relu: shapes differ: the input is " + shape_of(input) +
                                         ", the output is " + shape_of(output));
  Span out(output);
  if (out.size() == 0) return 0;
  Launch launch(out.size());
  dlsys::kernels::relu<<<launch.blocks, launch.threads>>>(Span(input), out);
  return launched("relu");
}

namespace dlsys {
namespace kernels {
__global__ void relu_gradient(const Span in, const Span grad, Span out) {
  const int64_t i = element_index();
  if (i < out.size()) out[i] = in[i] > 0 ? grad[i] : 0;
}
}  // namespace kernels
}  // namespace dlsys
int DLGpuReluGradient(const DLArrayHandle input, const DLArrayHandle in_grad,
                      DLArrayHandle output) {
  REQUIRE(same_shape(input, in_grad) && same_shape(input, output),
          "relu_gradient: shapes differ: the input is " + shape_of(input) + ", the gradient is " +
              shape_of(in_grad) + ", the output is " + shape_of(output));
  Span out(output);
  if (out.size() == 0) return 0;
  Launch launch(out.size());
  dlsys::kernels::relu_gradient<<<launch.blocks, launch.threads>>>(Span(input), Span(in_grad), out);
  return launched("relu_gradient");
}

// ---------------------------------------------------------------------------------------------
// softmax

namespace dlsys {
namespace kernels {
// Three kernels, with the largest elements and the sums in device memory between them.
__global__ void row_largest(int64_t rows, int64_t columns, const Span in, float* largest) {
  const int64_t row = element_index();
  if (row >= rows) return;
  const Span x = in.part(row, columns);
  float most = x[0];
  for (float value : x) most = most < value ? value : most;
  largest[row] = most;
}

__global__ void row_sums(int64_t rows, int64_t columns, const Span in, const float* largest,
                         float* sums) {
  const int64_t row = element_index();
  if (row >= rows) return;
  float sum = 0;
  for (float value : in.part(row, columns)) sum += device::Exponent::of(value, largest[row]);
  sums[row] = sum;
}

__global__ void normalise(int64_t columns, const Span in, const float* largest, const float* sums,
                          Span out) {
  const int64_t i = element_index();
  if (i >= out.size()) return;
  const int64_t row = i / columns;
  out[i] = device::Exponent::of(in[i], largest[row]) / sums[row];
}
}  // namespace kernels
}  // namespace dlsys
int DLGpuSoftmax(const DLArrayHandle input, DLArrayHandle output) {
  REQUIRE(input->ndim == 2 && same_shape(input, output),
          "softmax: the input is " + shape_of(input) + ", the output is " + shape_of(output) +
              "; both must have the same 2-D shape");
  const int64_t rows = input->shape[0], columns = input->shape[1];
  if (rows * columns == 0) return 0;
  float* both = Scratch::get("softmax", 2 * rows);
  if (both == nullptr) return DLSetLastError("softmax: no memory", -1);
  Launch by_row(rows), by_element(rows * columns);
  dlsys::kernels::row_largest<<<by_row.blocks, by_row.threads>>>(rows, columns, Span(input), both);
  dlsys::kernels::row_sums<<<by_row.blocks, by_row.threads>>>(rows, columns, Span(input), both,
                                                              both + rows);
  dlsys::kernels::normalise<<<by_element.blocks, by_element.threads>>>(columns, Span(input), both,
                                                                       both + rows, Span(output));
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

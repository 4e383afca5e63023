/*!
 * \file gpu.cuh
 * \brief What the GPU back end's kernels are made of: loops, reductions, rows, products, indices.
 *
 * Sums are combined in an order that sizes alone decide: no atomics, so that each run gives the
 * same bits. Launchers return 0, or -1 where the device has refused.
 */
#ifndef DLSYS_BACKEND_GPU_CUH_
#define DLSYS_BACKEND_GPU_CUH_

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "numbers.h"

namespace dlsys {
namespace backend {

const int kThreads = 256;
/*! \brief Most axes that nested loops have once they are collapsed. */
const int kMostAxes = 8;
/*! \brief Blocks that keep every multiprocessor busy; threads go on in steps of the grid. */
const int64_t kMostBlocks = 4096;

inline int launched() { return cudaGetLastError() == cudaSuccess ? 0 : -1; }

inline int blocks_for(int64_t items) {
  const int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<int>(std::max<int64_t>(1, std::min(blocks, kMostBlocks)));
}

/*! \brief Nested loops, and how each operand lies along them: what loops.h has as Axes. */
template <int operands>
struct Loops {
  int rank;
  int64_t extents[kMostAxes];
  int64_t strides[operands][kMostAxes];

  /*! \brief Reads them at n, which then points behind them. */
  explicit Loops(const int64_t*& n) : rank(static_cast<int>(n[0])) {
    ++n;
    for (int axis = 0; axis < rank; ++axis) extents[axis] = *n++;
    for (int i = 0; i < operands; ++i)
      for (int axis = 0; axis < rank; ++axis) strides[i][axis] = *n++;
  }

  DLSYS_INLINE int64_t size() const {
    int64_t product = 1;
    for (int axis = 0; axis < rank; ++axis) product *= extents[axis];
    return product;
  }

  /*! \brief Adds to `at` where iteration `index` finds each operand. */
  DLSYS_INLINE void add_offsets(int64_t index, int64_t* at) const {
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int64_t digit = axis == 0 ? index : index % extents[axis];
      index /= extents[axis];
      for (int i = 0; i < operands; ++i) at[i] += digit * strides[i][axis];
    }
  }
};

/*! \brief Elements that a thread reads and writes at once. */
const int kPack = 4;

/*! \brief So many of an operand; four floats are the 16 bytes that one instruction takes. */
template <class T>
struct alignas(sizeof(T) * kPack < 16 ? sizeof(T) * kPack : 16) Pack {
  T values[kPack];
};

/*! \brief Whether the operands start where a Pack may. */
inline bool are_aligned(char* const* data, int count) {
  for (int i = 0; i < count; ++i)
    if (reinterpret_cast<uintptr_t>(data[i]) % 16 != 0) return false;
  return true;
}

/*! \brief Elements that one thread reduces before those of a block are combined. */
const int64_t kReducedByAThread = 16;
/*! \brief Blocks that a reduction is cut in chunks for; each has 32 partial results at most. */
const int64_t kBlocksOfACut = 1024;

/*! \brief The Way of one value of each of the block's threads; all threads get it. */
template <class Way, class T>
__device__ T of_block(T value) {
  __shared__ T partial[kThreads];
  const int thread = threadIdx.x;
  __syncthreads();
  partial[thread] = value;
  __syncthreads();
  for (int width = kThreads / 2; width > 0; width /= 2) {
    if (thread < width) partial[thread] = Way::both(partial[thread], partial[thread + width]);
    __syncthreads();
  }
  return partial[0];
}

/*! \brief The Way of one value of each lane of a warp; all lanes get it. */
template <class Way, class T>
__device__ T of_warp(T value) {
  for (int apart = 16; apart > 0; apart /= 2)
    value = Way::both(value, __shfl_xor_sync(0xffffffffu, value, apart));
  return value;
}

/*! \brief How a reduction is cut. */
struct Cut {
  int64_t chunks;
  int64_t length;  // of a chunk
};

/*! \brief Chunks of at least `least` elements, no more than fill the GPU with `blocks` of each. */
inline Cut cut(int64_t blocks, int64_t length, int64_t least) {
  const int64_t wanted = std::max<int64_t>(1, kBlocksOfACut / blocks);
  const int64_t chunks = std::max<int64_t>(1, std::min(wanted, length / least));
  return {chunks, (length + chunks - 1) / chunks};
}

/*! \brief Each block reduces one chunk for one output; its threads lie along the reduced axes. */
template <class T, class Way, int inputs, class Load, class Store>
__global__ void reduce_rows_kernel(Loops<inputs + 1> kept, Loops<inputs> reduced, int64_t length,
                                   Cut cut, Load load, Store store, T* partial) {
  const int64_t outer = kept.size();
  for (int64_t item = blockIdx.x; item < outer * cut.chunks; item += gridDim.x) {
    int64_t at[inputs + 1] = {};
    kept.add_offsets(item / cut.chunks, at);
    const int64_t begin = item % cut.chunks * cut.length;
    const int64_t end = begin + cut.length < length ? begin + cut.length : length;
    T total = Way::start();
    for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
      int64_t from[inputs];
      for (int k = 0; k < inputs; ++k) from[k] = at[k + 1];
      reduced.add_offsets(i, from);
      total = Way::both(total, load(from));
    }
    total = of_block<Way>(total);
    if (threadIdx.x == 0) {
      if (cut.chunks > 1)
        partial[item] = total;
      else
        store(at[0], total);
    }
  }
}

const int kColumnsOfABlock = 32;
const int kRowsOfABlock = kThreads / kColumnsOfABlock;

/*! \brief Each block reduces one chunk for 32 outputs; neighbouring threads have neighbours. */
template <class T, class Way, int inputs, class Load, class Store>
__global__ void reduce_columns_kernel(Loops<inputs + 1> kept, Loops<inputs> reduced, int64_t length,
                                      Cut cut, Load load, Store store, T* partial) {
  __shared__ T totals[kRowsOfABlock][kColumnsOfABlock];
  const int64_t outer = kept.size();
  const int64_t tiles = (outer + kColumnsOfABlock - 1) / kColumnsOfABlock;
  const int column = threadIdx.x % kColumnsOfABlock, row = threadIdx.x / kColumnsOfABlock;
  for (int64_t item = blockIdx.x; item < tiles * cut.chunks; item += gridDim.x) {
    const int64_t output = item / cut.chunks * kColumnsOfABlock + column;
    const int64_t chunk = item % cut.chunks;
    const int64_t begin = chunk * cut.length;
    const int64_t end = begin + cut.length < length ? begin + cut.length : length;
    int64_t at[inputs + 1] = {};
    T total = Way::start();
    if (output < outer) {
      kept.add_offsets(output, at);
      for (int64_t i = begin + row; i < end; i += kRowsOfABlock) {
        int64_t from[inputs];
        for (int k = 0; k < inputs; ++k) from[k] = at[k + 1];
        reduced.add_offsets(i, from);
        total = Way::both(total, load(from));
      }
    }
    totals[row][column] = total;
    __syncthreads();
    if (row == 0 && output < outer) {
      for (int r = 1; r < kRowsOfABlock; ++r) total = Way::both(total, totals[r][column]);
      if (cut.chunks > 1)
        partial[output * cut.chunks + chunk] = total;
      else
        store(at[0], total);
    }
    __syncthreads();
  }
}

/*! \brief The second part of a reduction that was cut: a block for the chunks of each output. */
template <class T, class Way, int inputs, class Store>
__global__ void combine_kernel(Loops<inputs + 1> kept, int64_t chunks, Store store,
                               const T* partial) {
  const int64_t outer = kept.size();
  for (int64_t output = blockIdx.x; output < outer; output += gridDim.x) {
    T total = Way::start();
    for (int64_t c = threadIdx.x; c < chunks; c += kThreads)
      total = Way::both(total, partial[output * chunks + c]);
    total = of_block<Way>(total);
    if (threadIdx.x == 0) {
      int64_t at[inputs + 1] = {};
      kept.add_offsets(output, at);
      store(at[0], total);
    }
  }
}

/*!
 * \brief A reduction; see the instruction Reduce.
 * \param by_rows whether threads lie along the reduced axes, or along the kept ones.
 * \param partial room for the partial results.
 */
template <class T, class Way, int inputs, bool by_rows, class Load, class Store>
int reduce(const int64_t* n, Load load, Store store, T* partial) {
  const Loops<inputs + 1> kept(n);
  const Loops<inputs> reduced(n);
  const int64_t outer = kept.size(), length = reduced.size();
  if (outer == 0) return 0;
  const int64_t groups =
      by_rows ? outer : (outer + kColumnsOfABlock - 1) / kColumnsOfABlock * kColumnsOfABlock;
  const Cut parts = by_rows ? cut(groups, length, kThreads * kReducedByAThread)
                            : cut(groups / kColumnsOfABlock, length, kRowsOfABlock * 32);
  const int64_t blocks = (by_rows ? outer : groups / kColumnsOfABlock) * parts.chunks;
  const int grid = static_cast<int>(std::min<int64_t>(blocks, 1 << 20));
  if (by_rows)
    reduce_rows_kernel<T, Way, inputs>
        <<<grid, kThreads>>>(kept, reduced, length, parts, load, store, partial);
  else
    reduce_columns_kernel<T, Way, inputs>
        <<<grid, kThreads>>>(kept, reduced, length, parts, load, store, partial);
  if (parts.chunks > 1)
    combine_kernel<T, Way, inputs>
        <<<static_cast<int>(std::min<int64_t>(outer, 1 << 20)), kThreads>>>(kept, parts.chunks,
                                                                            store, partial);
  return launched();
}

/*! \brief An index among 0 .. count - 1: a wrong one reads another element, and is told after. */
__device__ inline int64_t kept_inside(int64_t index, int64_t count) {
  return index < 0 ? 0 : index >= count ? count - 1 : index;
}

// Rows: one block a row, whose threads take every 256th element.

/*! \brief Which row a block has, how long it is, and what else its function takes. */
struct RowOf {
  int64_t row, columns;
  double first, second;
};

template <class T>
__device__ T largest_of_row(const T* x, int64_t columns) {
  T most = Largest<T>::start();
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) most = maximum(most, x[i]);
  return of_block<Largest<T>>(most);
}

template <class T>
__device__ T sum_of_exponentials(const T* x, int64_t columns, T shift) {
  T total = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) total += exp(x[i] - shift);
  return of_block<Sum<T>>(total);
}

template <class T>
struct SoftmaxRow {
  __device__ static void of(T* y, const T* x, const T*, RowOf row) {
    const int64_t columns = row.columns;
    const T most = largest_of_row(x, columns);
    const T scale = 1 / sum_of_exponentials(x, columns, most);
    for (int64_t i = threadIdx.x; i < columns; i += kThreads) y[i] = exp(x[i] - most) * scale;
  }
};

template <class T>
struct LogSoftmaxRow {
  __device__ static void of(T* y, const T* x, const T*, RowOf row) {
    const int64_t columns = row.columns;
    const T most = largest_of_row(x, columns);
    const T total = log(sum_of_exponentials(x, columns, most));
    for (int64_t i = threadIdx.x; i < columns; i += kThreads) y[i] = x[i] - most - total;
  }
};

template <class T>
struct LogSumExpRow {
  __device__ static void of(T* y, const T* x, const T*, RowOf row) {
    const int64_t columns = row.columns;
    const T most = largest_of_row(x, columns);
    const T shift = most - most == 0 ? most : T(0);
    const T total = log(sum_of_exponentials(x, columns, shift)) + shift;
    if (threadIdx.x == 0) y[0] = total;
  }
};

template <class T>
struct CrossEntropyRow {
  __device__ static void of(T* y, const T* x, const T* targets, RowOf row) {
    const int64_t columns = row.columns;
    const T most = largest_of_row(x, columns);
    const T total = log(sum_of_exponentials(x, columns, most));
    T sum = 0;
    for (int64_t i = threadIdx.x; i < columns; i += kThreads)
      sum += targets[row.row * columns + i] * (x[i] - most - total);
    sum = of_block<Sum<T>>(sum);
    if (threadIdx.x == 0) y[0] = -sum;
  }
};

/*! \brief Targets are `second` everywhere, and `first` more at the class of the row. */
template <class T>
struct ClassEntropyRow {
  __device__ static void of(T* y, const T* x, const int64_t* classes, RowOf row) {
    const int64_t columns = row.columns;
    const T most = largest_of_row(x, columns);
    const T total = log(sum_of_exponentials(x, columns, most));
    T all = 0;
    if (row.second != 0) {
      for (int64_t i = threadIdx.x; i < columns; i += kThreads) all += x[i] - most - total;
      all = of_block<Sum<T>>(all);
    }
    if (threadIdx.x != 0) return;
    const int64_t hit = kept_inside(classes[row.row], columns);
    y[0] = -static_cast<T>(row.first) * (x[hit] - most - total) - static_cast<T>(row.second) * all;
  }
};

/*! \brief Where the first element stands that is the Way of the row, or the first NaN. */
template <class T, class Way>
struct FirstOfRow {
  __device__ static void of(int64_t* y, const T* x, const T*, RowOf row) {
    const int64_t columns = row.columns;
    T found = Way::start();
    for (int64_t i = threadIdx.x; i < columns; i += kThreads) found = Way::both(found, x[i]);
    found = of_block<Way>(found);
    int64_t first = columns;
    for (int64_t i = threadIdx.x; i < columns && first == columns; i += kThreads)
      if (x[i] == found || is_nan(x[i])) first = i;
    first = of_block<Smallest<int64_t>>(first);
    if (threadIdx.x == 0) y[0] = first;
  }
};

template <class T>
struct ProductOfOthersRow {
  __device__ static void of(T* y, const T* x, const T*, RowOf row) {
    const int64_t columns = row.columns;
    if (threadIdx.x != 0) return;
    T before = 1, behind = 1;
    for (int64_t i = 0; i < columns; ++i) {
      y[i] = before;
      before *= x[i];
    }
    for (int64_t i = columns - 1; i >= 0; --i) {
      y[i] *= behind;
      behind *= x[i];
    }
  }
};

/*! \brief y[0]: whether all are among 0 .. count[0] - 1. */
struct CheckIndicesRow {
  __device__ static void of(bool* y, const int64_t* x, const int64_t* count, RowOf row) {
    const int64_t columns = row.columns;
    int64_t wrong = 0;
    for (int64_t i = threadIdx.x; i < columns; i += kThreads) wrong += x[i] < 0 || x[i] >= count[0];
    wrong = of_block<Sum<int64_t>>(wrong);
    if (threadIdx.x == 0) y[0] = wrong == 0;
  }
};

/*! \brief Bytes of a row that a block keeps, so that it is read from memory once. */
const int64_t kMostOfARow = 40 * 1024;

template <class Row, class Out, class In, class Other>
__global__ void rows_kernel(Out* out, const In* x, const Other* other, int64_t rows, RowOf each,
                            int64_t of_each, bool is_kept) {
  extern __shared__ double memory[];
  In* const kept = reinterpret_cast<In*>(memory);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const In* from = x + row * each.columns;
    if (is_kept) {
      for (int64_t i = threadIdx.x; i < each.columns; i += kThreads) kept[i] = from[i];
      __syncthreads();
      from = kept;
    }
    each.row = row;
    Row::of(out + row * of_each, from, other, each);
    __syncthreads();
  }
}

/*! \brief A function of rows; `of_each` elements of the result for each. */
template <class Row, class Out, class In, class Other>
int rows(Out* out, const In* x, const Other* other, int64_t count, int64_t columns, int64_t of_each,
         double first, double second) {
  if (count == 0) return 0;
  const int grid = static_cast<int>(std::min<int64_t>(count, 1 << 20));
  const int64_t bytes = columns * static_cast<int64_t>(sizeof(In));
  const bool is_kept = bytes <= kMostOfARow;
  const RowOf each = {0, columns, first, second};
  rows_kernel<Row>
      <<<grid, kThreads, is_kept ? bytes : 0>>>(out, x, other, count, each, of_each, is_kept);
  return launched();
}

inline cublasHandle_t cublas() {
  static cublasHandle_t handle = nullptr;
  if (handle == nullptr && cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) handle = nullptr;
  return handle;
}

inline cublasStatus_t gemm(cublasHandle_t handle, bool flip_a, bool flip_b, int m, int n, int k,
                           const float* a, int lead_a, const float* b, int lead_b, float* c) {
  const float one = 1, zero = 0;
  return cublasSgemm(handle, flip_a ? CUBLAS_OP_T : CUBLAS_OP_N, flip_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                     m, n, k, &one, a, lead_a, b, lead_b, &zero, c, m);
}

inline cublasStatus_t gemm(cublasHandle_t handle, bool flip_a, bool flip_b, int m, int n, int k,
                           const double* a, int lead_a, const double* b, int lead_b, double* c) {
  const double one = 1, zero = 0;
  return cublasDgemm(handle, flip_a ? CUBLAS_OP_T : CUBLAS_OP_N, flip_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                     m, n, k, &one, a, lead_a, b, lead_b, &zero, c, m);
}

/*! \brief See the instruction MatrixProduct. cuBLAS keeps columns side by side: c' = b' a'. */
template <class T>
int product(T* out, const T* left, const T* right, const int64_t* n) {
  const int rows = static_cast<int>(n[0]), columns = static_cast<int>(n[1]);
  const int k = static_cast<int>(n[2]);
  const bool flip_a = n[4] != 1, flip_b = n[6] != 1;
  const auto lead = [](bool flip, int64_t row, int64_t column, int tall, int wide) {
    return static_cast<int>(
        std::max<int64_t>(flip ? std::max(tall, 1) : std::max(wide, 1), flip ? column : row));
  };
  const int lead_a = lead(flip_a, n[3], n[4], rows, k);
  const int lead_b = lead(flip_b, n[5], n[6], k, columns);
  const int64_t* rest = n + 7;
  const Loops<3> batch(rest);
  if (rows == 0 || columns == 0) return 0;
  if (k == 0)
    return cudaMemset(out, 0, sizeof(T) * batch.size() * rows * columns) == cudaSuccess ? 0 : -1;
  for (int64_t item = 0; item < batch.size(); ++item) {
    int64_t at[3] = {};
    batch.add_offsets(item, at);
    if (gemm(cublas(), flip_b, flip_a, columns, rows, k, right + at[2], lead_b, left + at[1],
             lead_a, out + at[0]) != CUBLAS_STATUS_SUCCESS)
      return -1;
  }
  return 0;
}

/*! \brief The same of whole numbers: a thread for each element of the result. */
template <class T>
__global__ void whole_product_kernel(T* out, const T* left, const T* right, int64_t rows,
                                     int64_t columns, int64_t k, int64_t row_a, int64_t column_a,
                                     int64_t row_b, int64_t column_b, Loops<3> batch) {
  const int64_t each = rows * columns, total = each * batch.size();
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total;
       i += step) {
    int64_t at[3] = {};
    batch.add_offsets(i / each, at);
    const int64_t row = i % each / columns, column = i % columns;
    T sum = 0;
    for (int64_t l = 0; l < k; ++l)
      sum = static_cast<T>(sum + left[at[1] + row * row_a + l * column_a] *
                                     right[at[2] + l * row_b + column * column_b]);
    out[at[0] + row * columns + column] = sum;
  }
}

template <class T>
int whole_product(T* out, const T* left, const T* right, const int64_t* n) {
  const int64_t* rest = n + 7;
  const Loops<3> batch(rest);
  const int64_t total = n[0] * n[1] * batch.size();
  if (total == 0) return 0;
  whole_product_kernel<<<blocks_for(total), kThreads>>>(out, left, right, n[0], n[1], n[2], n[3],
                                                        n[4], n[5], n[6], batch);
  return launched();
}

/*! \brief See the instruction Gather. */
struct Chosen {
  int64_t outer, k, inner, count, strides[3];

  explicit Chosen(const int64_t* n) : outer(n[0]), k(n[1]), inner(n[2]), count(n[3]) {
    for (int i = 0; i < 3; ++i) strides[i] = n[4 + i];
  }
};

template <class T>
__global__ void gather_kernel(T* out, const T* x, const int64_t* indices, Chosen n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  const int64_t total = n.outer * n.k * n.inner;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < total;
       at += step) {
    const int64_t i = at % n.inner, j = at / n.inner % n.k, o = at / n.inner / n.k;
    const int64_t index = indices[o * n.strides[0] + j * n.strides[1] + i * n.strides[2]];
    out[at] = x[(o * n.count + kept_inside(index, n.count)) * n.inner + i];
  }
}

template <class T>
int gather(T* out, const T* x, const int64_t* indices, const int64_t* n) {
  const Chosen chosen(n);
  const int64_t total = chosen.outer * chosen.k * chosen.inner;
  if (total == 0 || chosen.count == 0) return 0;
  gather_kernel<<<blocks_for(total), kThreads>>>(out, x, indices, chosen);
  return launched();
}

/*! \brief A thread for each element of the result adds what comes to it, in the order of k. */
template <class T>
__global__ void scatter_kernel(T* out, const T* y, const int64_t* indices, Chosen n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  const int64_t total = n.outer * n.count * n.inner;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < total;
       at += step) {
    const int64_t i = at % n.inner, row = at / n.inner % n.count, o = at / n.inner / n.count;
    T sum = out[at];
    for (int64_t j = 0; j < n.k; ++j)
      if (indices[o * n.strides[0] + j * n.strides[1] + i * n.strides[2]] == row)
        sum = static_cast<T>(sum + y[(o * n.k + j) * n.inner + i]);
    out[at] = sum;
  }
}

template <class T>
int scatter(T* out, const T* y, const int64_t* indices, const int64_t* n) {
  const Chosen chosen(n);
  const int64_t total = chosen.outer * chosen.count * chosen.inner;
  if (total == 0) return 0;
  scatter_kernel<<<blocks_for(total), kThreads>>>(out, y, indices, chosen);
  return launched();
}

/*! \brief Random numbers, four from each value of the counter. */
template <class Kind, class T, class Stored>
__global__ void draw_kernel(Stored* out, int64_t size, uint64_t seed, uint64_t run, T first,
                            T second) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t block = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       block < (size + 3) / 4; block += step) {
    const Philox philox(block, run, seed);
    for (int i = 0; i < 4; i += 2) {
      T pair[2] = {philox.uniform<T>(i), philox.uniform<T>(i + 1)};
      Kind::of(pair[0], pair[1], first, second);
      for (int j = 0; j < 2; ++j)
        if (block * 4 + i + j < size) out[block * 4 + i + j] = as<Stored>(pair[j]);
    }
  }
}

template <class Kind, class T, class Stored>
int draw(Stored* out, const int64_t* n, const double* number) {
  if (n[0] == 0) return 0;
  draw_kernel<Kind, T><<<blocks_for((n[0] + 3) / 4), kThreads>>>(
      out, n[0], static_cast<uint64_t>(n[1]), static_cast<uint64_t>(n[2]),
      static_cast<T>(number[0]), static_cast<T>(number[1]));
  return launched();
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_GPU_CUH_

/*!
 * \file gpu.cuh
 * \brief What the GPU back end's kernels are made of: all but loops, reductions and rows.
 *
 * Sums are combined in an order that sizes alone decide: no atomics, so that each run gives the
 * same bits. Launchers return 0, or -1 where the device has refused.
 */
#ifndef DLSYS_BACKEND_GPU_CUH_
#define DLSYS_BACKEND_GPU_CUH_

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "gemm.cuh"
#include "gpu_loops.cuh"
#include "gpu_reduce.cuh"
#include "gpu_rows.cuh"

namespace dlsys {
namespace backend {

inline cublasHandle_t cublas(cudaStream_t on, bool tf32) {
  static cublasHandle_t handle = nullptr;
  if (handle == nullptr && cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return nullptr;
  const cublasMath_t mode = tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
  if (cublasSetMathMode(handle, mode) != CUBLAS_STATUS_SUCCESS) return nullptr;
  return cublasSetStream(handle, on) == CUBLAS_STATUS_SUCCESS ? handle : nullptr;
}

/*! \brief Products of one size whose operands lie evenly apart; what is the same for all lies 0
 * apart. */
struct Apart {
  int64_t a, b, c;
  int count;
};

inline cublasStatus_t gemm(cublasHandle_t handle, bool flip_a, bool flip_b, int m, int n, int k,
                           const float* a, int lead_a, const float* b, int lead_b, float* c,
                           Apart s) {
  const float one = 1, zero = 0;
  const cublasOperation_t of_a = flip_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t of_b = flip_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  if (s.count == 1)
    return cublasSgemm(handle, of_a, of_b, m, n, k, &one, a, lead_a, b, lead_b, &zero, c, m);
  return cublasSgemmStridedBatched(handle, of_a, of_b, m, n, k, &one, a, lead_a, s.a, b, lead_b,
                                   s.b, &zero, c, m, s.c, s.count);
}

inline cublasStatus_t gemm(cublasHandle_t handle, bool flip_a, bool flip_b, int m, int n, int k,
                           const double* a, int lead_a, const double* b, int lead_b, double* c,
                           Apart s) {
  const double one = 1, zero = 0;
  const cublasOperation_t of_a = flip_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t of_b = flip_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  if (s.count == 1)
    return cublasDgemm(handle, of_a, of_b, m, n, k, &one, a, lead_a, b, lead_b, &zero, c, m);
  return cublasDgemmStridedBatched(handle, of_a, of_b, m, n, k, &one, a, lead_a, s.a, b, lead_b,
                                   s.b, &zero, c, m, s.c, s.count);
}

/*! \brief See the instruction MatrixProduct. cuBLAS keeps columns side by side: c' = b' a'. */
template <class T>
int product(T* out, const T* left, const T* right, const int64_t* n, cudaStream_t on,
            bool tf32 = false) {
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
    return cudaMemsetAsync(out, 0, sizeof(T) * batch.size() * rows * columns, on) == cudaSuccess
               ? 0
               : -1;
  if (batch.size() == 0) return 0;
  // The innermost axis of the batch by one call.
  const Apart apart = {batch.step(2), batch.step(1), batch.step(0),
                       static_cast<int>(batch.inner())};
  for (int64_t item = 0; item < batch.size() / batch.inner(); ++item) {
    int64_t at[3] = {};
    batch.add_offsets(item, at, batch.rank - 1);
    if (gemm(cublas(on, tf32), flip_b, flip_a, columns, rows, k, right + at[2], lead_b,
             left + at[1], lead_a, out + at[0], apart) != CUBLAS_STATUS_SUCCESS)
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
int whole_product(T* out, const T* left, const T* right, const int64_t* n, cudaStream_t on) {
  const int64_t* rest = n + 7;
  const Loops<3> batch(rest);
  const int64_t total = n[0] * n[1] * batch.size();
  if (total == 0) return 0;
  whole_product_kernel<<<blocks_for(total), kThreads, 0, on>>>(out, left, right, n[0], n[1], n[2],
                                                               n[3], n[4], n[5], n[6], batch);
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
int gather(T* out, const T* x, const int64_t* indices, const int64_t* n, cudaStream_t on) {
  const Chosen chosen(n);
  const int64_t total = chosen.outer * chosen.k * chosen.inner;
  if (total == 0 || chosen.count == 0) return 0;
  gather_kernel<<<blocks_for(total), kThreads, 0, on>>>(out, x, indices, chosen);
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
int scatter(T* out, const T* y, const int64_t* indices, const int64_t* n, cudaStream_t on) {
  const Chosen chosen(n);
  const int64_t total = chosen.outer * chosen.count * chosen.inner;
  if (total == 0) return 0;
  scatter_kernel<<<blocks_for(total), kThreads, 0, on>>>(out, y, indices, chosen);
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
int draw(Stored* out, const int64_t* n, const double* number, cudaStream_t on) {
  if (n[0] == 0) return 0;
  draw_kernel<Kind, T><<<blocks_for((n[0] + 3) / 4), kThreads, 0, on>>>(
      out, n[0], static_cast<uint64_t>(n[1]), static_cast<uint64_t>(n[2]),
      static_cast<T>(number[0]), static_cast<T>(number[1]));
  return launched();
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_GPU_CUH_

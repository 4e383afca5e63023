/*!
 * \file gemm.cuh
 * \brief The matrix product of a compiled step: tiles in registers, K cut in parts, an epilogue.
 *
 * c = epilogue(a b). A block computes a tile of c; its threads keep their part of it in registers
 * and read a and b through shared memory, the next slice while this one is multiplied. Where the
 * tiles alone would leave multiprocessors idle, K is cut in parts: the block that is last at a tile
 * adds them up in their order, so that each run gives the same bits.
 */
#ifndef DLSYS_BACKEND_GEMM_CUH_
#define DLSYS_BACKEND_GEMM_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "numbers.h"

namespace dlsys {
namespace backend {

/*! \brief A tile: rows, columns and depth of a slice; what a thread has of it. */
template <int rows_, int columns_, int depth_, int of_rows_, int of_columns_>
struct Block {
  static const int rows = rows_, columns = columns_, depth = depth_;
  static const int of_rows = of_rows_, of_columns = of_columns_;
  static const int along = columns / of_columns;  // threads side by side
  static const int threads = rows / of_rows * along;
  static const int values = of_rows * of_columns;
};

/*! \brief Sizes of a product, and how the operands lie. */
struct Extents {
  int m, n, k;
  int64_t lead_a, lead_b;  // from line to line; lines lie along K, or along m and n
  int parts;               // of K
  int of_part;             // slices of K in a part, all but the last one
};

/*! \brief Floats that a tile's rows in shared memory lie apart beyond their length. */
const int kPad = 4;

__device__ inline void add(float4& to, float4 x) {
  to.x += x.x;
  to.y += x.y;
  to.z += x.z;
  to.w += x.w;
}

/*!
 * \brief One operand's way into shared memory: `lines` rows or columns of it, `depth` of K.
 * \tparam along_k whether its lines lie along K in memory.
 * \tparam packs whether four neighbours can be read at once, everywhere.
 */
template <int lines, int depth, int threads, bool along_k, bool packs>
struct Slice {
  static const int items = lines * depth / 4;  // packs of four
  static const int rounds = (items + threads - 1) / threads;
  static const int stride = lines + kPad;
  float4 held[rounds];

  /*! \brief Reads four neighbours, 0 where there are none. */
  __device__ static float4 read(const float* x, int64_t lead, int line, int k, int count,
                                int last) {
    float4 found = make_float4(0, 0, 0, 0);
    if (along_k) {
      if (line >= count || k >= last) return found;
      const float* const at = x + line * lead + k;
      if (packs && k + 3 < last) return *reinterpret_cast<const float4*>(at);
      found.x = at[0];
      if (k + 1 < last) found.y = at[1];
      if (k + 2 < last) found.z = at[2];
      if (k + 3 < last) found.w = at[3];
    } else {
      if (k >= last || line >= count) return found;
      const float* const at = x + k * lead + line;
      if (packs && line + 3 < count) return *reinterpret_cast<const float4*>(at);
      found.x = at[0];
      if (line + 1 < count) found.y = at[1];
      if (line + 2 < count) found.z = at[2];
      if (line + 3 < count) found.w = at[3];
    }
    return found;
  }

  /*! \brief Takes this thread's share of a slice into registers. */
  __device__ void load(const float* x, int64_t lead, int first, int k, int count, int last,
                       int thread) {
    for (int round = 0; round < rounds; ++round) {
      const int item = round * threads + thread;
      if (items % threads != 0 && item >= items) break;
      if (along_k)
        held[round] =
            read(x, lead, first + item / (depth / 4), k + item % (depth / 4) * 4, count, last);
      else
        held[round] =
            read(x, lead, first + item % (lines / 4) * 4, k + item / (lines / 4), count, last);
    }
  }

  /*! \brief Adds up this thread's packs, which are of the same four lines; not along K. */
  __device__ void add_to(float4& total, int thread) const {
    static_assert(!along_k && threads % (lines / 4) == 0, "a thread has packs of the same lines");
    for (int round = 0; round < rounds; ++round)
      if (items % threads == 0 || round * threads + thread < items) add(total, held[round]);
  }

  /*! \brief Writes it to shared memory, depth by depth. */
  __device__ void store(float* shared, int thread) const {
    for (int round = 0; round < rounds; ++round) {
      const int item = round * threads + thread;
      if (items % threads != 0 && item >= items) break;
      if (along_k) {
        const int line = item / (depth / 4), k = item % (depth / 4) * 4;
        shared[(k + 0) * stride + line] = held[round].x;
        shared[(k + 1) * stride + line] = held[round].y;
        shared[(k + 2) * stride + line] = held[round].z;
        shared[(k + 3) * stride + line] = held[round].w;
      } else {
        const int line = item % (lines / 4) * 4, k = item / (lines / 4);
        *reinterpret_cast<float4*>(shared + k * stride + line) = held[round];
      }
    }
  }
};

/*! \brief What a thread has of one depth of a slice: groups of four that lie `apart`. */
template <int count, int apart>
__device__ inline void take(float (&into)[count], const float* shared, int first) {
  for (int i = 0; i < count; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(shared + first * 4 + i / 4 * apart);
    into[i] = four.x;
    into[i + 1] = four.y;
    into[i + 2] = four.z;
    into[i + 3] = four.w;
  }
}

/*! \brief What is done with the sums of b's columns: nothing. */
struct NoSums {
  static const bool wanted = false;
  __device__ void operator()(int, int, const float*) const {}
};

/*!
 * \brief The kernel. grid: tiles along n, tiles along m, parts of K.
 * \tparam Epilogue gets four neighbours of c at a time: (row, column, columns of c, values).
 * \tparam Sums gets the sums of four columns of b: (column, columns of b, values).
 * \param partial room for parts x tiles x a tile's floats, and parts x columns of all tiles, if K
 * is cut.
 * \param arrived a counter for each tile, 0 before and after.
 */
template <class T, bool a_along_k, bool b_along_k, bool packs, class Epilogue, class Sums>
__global__ __launch_bounds__(T::threads) void gemm_kernel(const float* __restrict__ a,
                                                          const float* __restrict__ b, Extents e,
                                                          Epilogue epilogue, Sums sums,
                                                          float4* partial, unsigned* arrived) {
  typedef Slice<T::rows, T::depth, T::threads, a_along_k, packs> SliceA;
  typedef Slice<T::columns, T::depth, T::threads, b_along_k, packs> SliceB;
  __shared__ __align__(16) float of_a[2][T::depth * SliceA::stride];
  __shared__ __align__(16) float of_b[2][T::depth * SliceB::stride];
  static_assert(T::threads * 4 <= 2 * T::depth * SliceA::stride, "sums of columns fit");
  __shared__ bool is_last;
  const int thread = threadIdx.x;
  const int row = thread / T::along, column = thread % T::along;
  const int first_row = blockIdx.y * T::rows, first_column = blockIdx.x * T::columns;
  const int begin = blockIdx.z * e.of_part * T::depth;
  const int end = e.k < begin + e.of_part * T::depth ? e.k : begin + e.of_part * T::depth;
  const bool adds_columns = Sums::wanted && blockIdx.y == 0;
  float4 column_sum = make_float4(0, 0, 0, 0);
  float sum[T::of_rows][T::of_columns] = {};
  SliceA next_a;
  SliceB next_b;
  next_a.load(a, e.lead_a, first_row, begin, e.m, end, thread);
  next_b.load(b, e.lead_b, first_column, begin, e.n, end, thread);
  next_a.store(of_a[0], thread);
  next_b.store(of_b[0], thread);
  if constexpr (Sums::wanted)
    if (adds_columns) next_b.add_to(column_sum, thread);
  __syncthreads();
  int turn = 0;
  for (int k = begin; k < end; k += T::depth) {
    const bool goes_on = k + T::depth < end;
    if (goes_on) {
      next_a.load(a, e.lead_a, first_row, k + T::depth, e.m, end, thread);
      next_b.load(b, e.lead_b, first_column, k + T::depth, e.n, end, thread);
    }
    for (int d = 0; d < T::depth; ++d) {
      float x[T::of_rows], y[T::of_columns];
      take<T::of_rows, T::rows / (T::of_rows / 4)>(x, of_a[turn] + d * SliceA::stride, row);
      take<T::of_columns, T::columns / (T::of_columns / 4)>(y, of_b[turn] + d * SliceB::stride,
                                                            column);
      for (int i = 0; i < T::of_rows; ++i)
        for (int j = 0; j < T::of_columns; ++j) sum[i][j] += x[i] * y[j];
    }
    if (goes_on) {
      next_a.store(of_a[turn ^ 1], thread);
      next_b.store(of_b[turn ^ 1], thread);
      if constexpr (Sums::wanted)
        if (adds_columns) next_b.add_to(column_sum, thread);
    }
    __syncthreads();
    turn ^= 1;
  }
  // Sums of columns: of each thread's packs, then of all threads that have the same columns.
  const int quads = T::columns / 4, tile = blockIdx.y * gridDim.x + blockIdx.x;
  float4* const shared_sums = reinterpret_cast<float4*>(&of_a[0][0]);
  if (adds_columns) {
    shared_sums[thread] = column_sum;
    __syncthreads();
    if (thread < quads)
      for (int other = thread + quads; other < T::threads; other += quads)
        add(column_sum, shared_sums[other]);
  }
  if (e.parts > 1) {
    const int64_t step = static_cast<int64_t>(T::values / 4) * T::threads;
    const int64_t tiles = static_cast<int64_t>(gridDim.x) * gridDim.y;
    float4* const all = partial + tile * e.parts * step + thread;
    float4* const all_sums = partial + tiles * e.parts * step + tile * e.parts * quads + thread;
    for (int i = 0; i < T::of_rows; ++i)
      for (int j = 0; j < T::of_columns; j += 4)
        all[blockIdx.z * step + (i * T::of_columns + j) / 4 * T::threads] =
            make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
    if (adds_columns && thread < quads) all_sums[blockIdx.z * quads] = column_sum;
    __threadfence();
    __syncthreads();
    if (thread == 0) is_last = atomicAdd(&arrived[tile], 1u) == static_cast<unsigned>(e.parts) - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    if (thread == 0) arrived[tile] = 0;
    for (int i = 0; i < T::of_rows; ++i)
      for (int j = 0; j < T::of_columns; j += 4) {
        float4 total = make_float4(0, 0, 0, 0);
        for (int part = 0; part < e.parts; ++part)
          add(total, all[part * step + (i * T::of_columns + j) / 4 * T::threads]);
        sum[i][j] = total.x;
        sum[i][j + 1] = total.y;
        sum[i][j + 2] = total.z;
        sum[i][j + 3] = total.w;
      }
    if (adds_columns && thread < quads) {
      column_sum = make_float4(0, 0, 0, 0);
      for (int part = 0; part < e.parts; ++part) add(column_sum, all_sums[part * quads]);
    }
  }
  if (adds_columns && thread < quads) {
    const float four[4] = {column_sum.x, column_sum.y, column_sum.z, column_sum.w};
    sums(first_column + thread * 4, e.n, four);
  }
  for (int i = 0; i < T::of_rows; ++i) {
    const int m = first_row + row * 4 + i / 4 * (T::rows / (T::of_rows / 4)) + i % 4;
    if (m >= e.m) continue;
    for (int j = 0; j < T::of_columns; j += 4) {
      const int n = first_column + column * 4 + j / 4 * (T::columns / (T::of_columns / 4));
      epilogue(m, n, e.n, &sum[i][j]);
    }
  }
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_GEMM_CUH_

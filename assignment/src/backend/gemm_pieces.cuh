/*!
 * \file gemm_pieces.cuh
 * \brief What a warp multiplies at once: pieces of a slice, of float32 or, on tensor cores, of
 * TF32.
 *
 * Both kinds have the same words: `read` takes pieces of a and b from shared memory, `multiply`
 * adds their product to a thread's sums, `give` hands each element of the warp's tile to a function
 * of (row, column, value). A thread has of_rows x of_columns sums either way; which ones they are
 * only its kind knows.
 */
#ifndef DLSYS_BACKEND_GEMM_PIECES_CUH_
#define DLSYS_BACKEND_GEMM_PIECES_CUH_

#include <cuda_runtime.h>
#include <mma.h>

#include <type_traits>

namespace dlsys {
namespace backend {

/*! \brief What a thread has of a slice: `count` lines, as every one of `lanes`, `deep` of K. */
template <bool along_k, int count, int lanes, int stride, int deep>
struct Lines {
  static const int depth = deep;
  float x[deep][count];

  /*! \brief The i-th line, of a thread's first one. */
  __device__ static int place(int lane, int i) {
    return along_k ? lane + i * lanes : (lane + i / 4 * lanes) * 4 + i % 4;
  }

  /*! \brief Reads from k on; `first` is the warp's first line. */
  __device__ void read(const float* shared, int first, int lane, int k) {
    if constexpr (along_k) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const float* const at = shared + (first + place(lane, i)) * stride + k;
        static_assert(deep > 1, "vectors along K");
        if constexpr (deep == 4) {
          const float4 four = *reinterpret_cast<const float4*>(at);
          x[0][i] = four.x;
          x[1][i] = four.y;
          x[2][i] = four.z;
          x[3][i] = four.w;
        } else {
          const float2 two = *reinterpret_cast<const float2*>(at);
          x[0][i] = two.x;
          x[1][i] = two.y;
        }
      }
    } else {
#pragma unroll
      for (int d = 0; d < deep; ++d)
#pragma unroll
        for (int i = 0; i < count; i += 4) {
          const float4 four =
              *reinterpret_cast<const float4*>(shared + (k + d) * stride + first + place(lane, i));
          x[d][i] = four.x;
          x[d][i + 1] = four.y;
          x[d][i + 2] = four.z;
          x[d][i + 3] = four.w;
        }
    }
  }
};

/*! \brief Where a warp's tile begins in that of its block. */
template <class T>
struct Corner {
  int row, column;

  __device__ explicit Corner(int warp)
      : row(warp / T::warps_along * T::down * T::of_rows),
        column(warp % T::warps_along * T::along * T::of_columns) {}
};

/*! \brief Each thread multiplies its own lines. SliceA and SliceB say how slices lie. */
template <class T, class SliceA, class SliceB>
struct OfFloats {
  // Of K, what a thread reads at once: as much as its registers hold twice, besides its sums.
  static const int registers =
      T::blocks * T::threads > 256 ? 65536 / (T::blocks * T::threads) : 255;
  static const int left = registers - T::values - 40, each = 2 * (T::of_rows + T::of_columns);
  static const int least = SliceA::lies_along_k || SliceB::lies_along_k ? 2 : 1;
  static const int deep = 4 * each <= left ? 4 : 2 * each <= left ? 2 : least;
  typedef Lines<SliceA::lies_along_k, T::of_rows, T::down, SliceA::stride, deep> A;
  typedef Lines<SliceB::lies_along_k, T::of_columns, T::along, SliceB::stride, deep> B;
  typedef float Sums[T::of_rows][T::of_columns];
  Corner<T> corner;
  int row, column;

  /*! \brief Lanes whose numbers differ in bit 0 have the same rows, in bit 1 the same columns: then
   * half a warp reads four floats each in one go, where it else takes two. */
  __device__ explicit OfFloats(int thread)
      : corner(thread / 32),
        row(thread / 2 % 2 + thread % 32 / 16 * 2),
        column(thread % 2 + thread / 4 % 4 * 2) {}

  __device__ void read(A& x, B& y, const float* stage, int k) const {
    x.read(stage, corner.row, row, k);
    y.read(stage + SliceA::floats, corner.column, column, k);
  }

  /*! \brief Along one row and back along the next one: so one operand at least is what the
   * instruction before had, which the register file need not give again. */
  __device__ static void multiply(Sums& sum, const A& x, const B& y) {
#pragma unroll
    for (int d = 0; d < deep; ++d)
#pragma unroll
      for (int i = 0; i < T::of_rows; ++i)
#pragma unroll
        for (int step = 0; step < T::of_columns; ++step) {
          const int j = i % 2 == 0 ? step : T::of_columns - 1 - step;
          sum[i][j] += x.x[d][i] * y.x[d][j];
        }
  }

  template <class Function>
  __device__ void give(const Sums& sum, float*, Function function) const {
#pragma unroll
    for (int i = 0; i < T::of_rows; ++i)
#pragma unroll
      for (int j = 0; j < T::of_columns; ++j)
        function(corner.row + A::place(row, i), corner.column + B::place(column, j), sum[i][j]);
  }
};

/*! \brief Fragments of an operand, 16 lines each, 8 of K deep. */
template <class Use, bool along_k, int count, int stride>
struct Fragments {
  typedef nvcuda::wmma::row_major Rows;
  typedef nvcuda::wmma::col_major Columns;
  static const bool by_rows = std::is_same<Use, nvcuda::wmma::matrix_a>::value == along_k;
  typedef std::conditional_t<by_rows, Rows, Columns> Layout;
  nvcuda::wmma::fragment<Use, 16, 16, 8, nvcuda::wmma::precision::tf32, Layout> x[count];

  /*! \brief Reads from k on, rounded to TF32; `first` is the warp's first line. */
  __device__ void read(const float* shared, int first, int k) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int line = first + i * 16;
      const float* const at = shared + (along_k ? line * stride + k : k * stride + line);
      nvcuda::wmma::load_matrix_sync(x[i], at, stride);
#pragma unroll
      for (int e = 0; e < x[i].num_elements; ++e)
        x[i].x[e] = nvcuda::wmma::__float_to_tf32(x[i].x[e]);
    }
  }
};

/*! \brief The tensor cores multiply fragments of 16 x 8 and 8 x 16, a warp together. */
template <class T, class SliceA, class SliceB>
struct OfFragments {
  static const int deep = 8;
  static const int down = T::down * T::of_rows / 16, along = T::along * T::of_columns / 16;
  static_assert(T::of_rows % 4 == 0 && T::of_columns % 2 == 0, "fragments of 16 x 16");
  typedef Fragments<nvcuda::wmma::matrix_a, SliceA::lies_along_k, down, SliceA::stride> A;
  typedef Fragments<nvcuda::wmma::matrix_b, SliceB::lies_along_k, along, SliceB::stride> B;
  typedef nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> Sum;
  typedef float Sums[T::of_rows][T::of_columns];
  static const int stride = 20, floats = 16 * stride;  // of a fragment that lies in shared memory
  static_assert(T::threads / 32 * floats <= T::stages * (SliceA::floats + SliceB::floats), "room");
  Corner<T> corner;
  int lane, own;

  __device__ explicit OfFragments(int thread)
      : corner(thread / 32), lane(thread % 32), own(thread / 32 * floats) {}

  __device__ void read(A& x, B& y, const float* stage, int k) const {
    x.read(stage, corner.row, k);
    y.read(stage + SliceA::floats, corner.column, k);
  }

  /*! \brief The fragment (i, j): of a thread's sums, a run of num_elements. */
  __device__ static Sum taken(const Sums& sum, int i, int j) {
    Sum found;
#pragma unroll
    for (int e = 0; e < Sum::num_elements; ++e) {
      const int at = (i * along + j) * Sum::num_elements + e;
      found.x[e] = sum[at / T::of_columns][at % T::of_columns];
    }
    return found;
  }

  __device__ static void multiply(Sums& sum, const A& x, const B& y) {
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int j = 0; j < along; ++j) {
        Sum now = taken(sum, i, j);
        nvcuda::wmma::mma_sync(now, x.x[i], y.x[j], now);
#pragma unroll
        for (int e = 0; e < Sum::num_elements; ++e) {
          const int at = (i * along + j) * Sum::num_elements + e;
          sum[at / T::of_columns][at % T::of_columns] = now.x[e];
        }
      }
  }

  /*! \brief Which thread has which element of a fragment is not said, so each goes by way of shared
   * memory. */
  template <class Function>
  __device__ void give(const Sums& sum, float* shared, Function function) const {
    __syncthreads();  // all have read their last slice
    float* const room = shared + own;
    for (int i = 0; i < down; ++i)
      for (int j = 0; j < along; ++j) {
        nvcuda::wmma::store_matrix_sync(room, taken(sum, i, j), stride,
                                        nvcuda::wmma::mem_row_major);
        __syncwarp();
        for (int at = lane; at < 256; at += 32)
          function(corner.row + i * 16 + at / 16, corner.column + j * 16 + at % 16,
                   room[at / 16 * stride + at % 16]);
        __syncwarp();
      }
  }
};

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_GEMM_PIECES_CUH_

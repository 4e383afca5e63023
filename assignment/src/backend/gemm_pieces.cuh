/*!
 * \file gemm_pieces.cuh
 * \brief What a warp multiplies at once: pieces of a slice, of float32 or, on tensor cores, of
 * TF32.
 *
 * Both kinds have the same words: `read` takes pieces of a and b from shared memory, `multiply`
 * adds their product to a thread's sums, `give` hands elements of the warp's tile to a function of
 * (row, column, value): of packs of four sums, as they lie, the first one that it is told, and each
 * `shares`-th after it. A thread has of_rows x of_columns sums either way; which ones they are
 * only its kind knows.
 */
#ifndef DLSYS_BACKEND_GEMM_PIECES_CUH_
#define DLSYS_BACKEND_GEMM_PIECES_CUH_

#include <cuda_runtime.h>

namespace dlsys {
namespace backend {

/*! \brief What a thread has of a slice: `count` lines, as every one of `lanes`, `deep` of K. */
template <bool along_k, int count, int lanes, int stride, int deep>
struct Lines {
  static const int depth = deep;
  static const int packed = along_k ? 0 : count / 4 * 4;  // lines that are read four at a time
  float x[deep][count];

  /*! \brief The i-th line, of a thread's first one. */
  __device__ static int place(int lane, int i) {
    return i < packed ? (lane + i / 4 * lanes) * 4 + i % 4
                      : packed * lanes + lane + (i - packed) * lanes;
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
        for (int i = 0; i < packed; i += 4) {
          const float4 four =
              *reinterpret_cast<const float4*>(shared + (k + d) * stride + first + place(lane, i));
          x[d][i] = four.x;
          x[d][i + 1] = four.y;
          x[d][i + 2] = four.z;
          x[d][i + 3] = four.w;
        }
#pragma unroll
      for (int d = 0; d < deep; ++d)
#pragma unroll
        for (int i = packed; i < count; ++i)
          x[d][i] = shared[(k + d) * stride + first + place(lane, i)];
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
  __device__ void give(const Sums& sum, int pack, int shares, Function function) const {
#pragma unroll
    for (int i = 0; i < T::of_rows; ++i)
#pragma unroll
      for (int j = 0; j < T::of_columns; j += 4) {
        if ((i * T::of_columns + j) / 4 != pack) continue;
        pack += shares;
#pragma unroll
        for (int e = j; e < j + 4; ++e)
          function(corner.row + A::place(row, i), corner.column + B::place(column, e), sum[i][e]);
      }
  }
};

/*! \brief A number rounded to TF32: 10 binary places, halves away from 0. */
__device__ inline unsigned as_tf32(float x) {
  unsigned found;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(found) : "f"(x));
  return found;
}

/*! \brief As many floats as are read at once, 1, 2 or 4. */
template <int count>
struct alignas(4 * count) Neighbours {
  float x[count];
};

/*!
 * \brief A warp's fragments of an operand, each 8 lines by 8 of K, rounded to TF32.
 *
 * Tensor cores say which of 32 threads has what: thread 4 g + t has numbers t and t + 4 of line g.
 * They add up over K, and any order of K is right that a and b share, so a thread takes the
 * neighbours 2 t and 2 t + 1 instead. Lines may be exchanged, too: where they lie side by side, a
 * thread reads one of each of some fragments in one go.
 */
template <bool along_k, int count, int stride>
struct Fragments {
  static const int pack = along_k ? 1 : count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1;
  unsigned x[count][2];

  /*! \brief Which of the warp's lines is line g of fragment i. */
  __device__ static int line(int i, int g) { return i / pack * 8 * pack + g * pack + i % pack; }

  /*! \brief Reads from k on; `first` is the warp's first line. */
  __device__ void read(const float* shared, int first, int lane, int k) {
    const int g = lane / 4, from = k + lane % 4 * 2;
    if constexpr (along_k) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const float* const at = shared + (first + line(i, g)) * stride + from;
        const float2 two = *reinterpret_cast<const float2*>(at);
        x[i][0] = as_tf32(two.x);
        x[i][1] = as_tf32(two.y);
      }
    } else {
#pragma unroll
      for (int i = 0; i < count; i += pack)
#pragma unroll
        for (int d = 0; d < 2; ++d) {
          const float* const at = shared + (from + d) * stride + first + line(i, g);
          const Neighbours<pack> some = *reinterpret_cast<const Neighbours<pack>*>(at);
#pragma unroll
          for (int e = 0; e < pack; ++e) x[i + e][d] = as_tf32(some.x[e]);
        }
    }
  }
};

/*! \brief The tensor cores multiply fragments, 16 x 8 of a and 8 x 8 of b, a warp together. */
template <class T, class SliceA, class SliceB>
struct OfFragments {
  static const int deep = 8;
  static const int down = T::down * T::of_rows / 16, along = T::along * T::of_columns / 8;
  static_assert(T::of_rows % 4 == 0, "fragments of 16 rows");
  typedef Fragments<SliceA::lies_along_k, 2 * down, SliceA::stride> A;  // two make 16 rows
  typedef Fragments<SliceB::lies_along_k, along, SliceB::stride> B;
  typedef float Sums[T::of_rows][T::of_columns];
  Corner<T> corner;
  int lane;

  __device__ explicit OfFragments(int thread) : corner(thread / 32), lane(thread % 32) {}

  __device__ void read(A& x, B& y, const float* stage, int k) const {
    x.read(stage, corner.row, lane, k);
    y.read(stage + SliceA::floats, corner.column, lane, k);
  }

  /*! \brief Which sum is number e of four that a thread has of fragment (i, j). */
  template <class Any>
  __device__ static auto& of(Any& sum, int i, int j, int e) {
    const int at = (i * along + j) * 4 + e;
    return sum[at / T::of_columns][at % T::of_columns];
  }

  __device__ static void multiply(Sums& sum, const A& x, const B& y) {
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int j = 0; j < along; ++j)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(of(sum, i, j, 0)), "+f"(of(sum, i, j, 1)), "+f"(of(sum, i, j, 2)),
              "+f"(of(sum, i, j, 3))
            : "r"(x.x[2 * i][0]), "r"(x.x[2 * i + 1][0]), "r"(x.x[2 * i][1]),
              "r"(x.x[2 * i + 1][1]), "r"(y.x[j][0]), "r"(y.x[j][1]));
  }

  template <class Function>
  __device__ void give(const Sums& sum, int pack, int shares, Function function) const {
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int j = 0; j < along; ++j) {
        if (i * along + j != pack) continue;
        pack += shares;
#pragma unroll
        for (int e = 0; e < 4; ++e)
          function(corner.row + A::line(2 * i + e / 2, lane / 4),
                   corner.column + B::line(j, lane % 4 * 2 + e % 2), of(sum, i, j, e));
      }
  }
};

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_GEMM_PIECES_CUH_

/*!
 * \file gpu_rows.cuh
 * \brief The GPU back end's functions of whole rows, such as softmax, see the instruction Rows.
 *
 * A team of threads has a row: each keeps its elements in registers, so that memory is read once.
 * A row that is too long for that is read again for each step.
 */
#ifndef DLSYS_BACKEND_GPU_ROWS_CUH_
#define DLSYS_BACKEND_GPU_ROWS_CUH_

#include "gpu_loops.cuh"

namespace dlsys {
namespace backend {

/*! \brief An index among 0 .. count - 1: a wrong one reads another element, and is told after. */
__device__ inline int64_t kept_inside(int64_t index, int64_t count) {
  return index < 0 ? 0 : index >= count ? count - 1 : index;
}

/*! \brief Which row a team has, how long it is, and what else its function takes. */
struct RowOf {
  int64_t row, columns;
  double first, second;
};

/*! \brief Threads of the largest team; fewer where each needs more registers. */
template <class T>
DLSYS_INLINE constexpr int most_of_a_team(bool packed) {
  return packed && sizeof(T) < 8 ? 1024 : 512;
}

/*! \brief Packs that one thread keeps: 128 bytes, or less. */
template <class T>
struct PacksOfAThread {
  static constexpr int kCount = sizeof(T) == 8 ? 4 : 8;
};

/*! \brief Rows that a function keeps at once. */
template <class Function>
struct RowsKept {
  static constexpr int kCount = 1;
};

/*!
 * \brief A row in the registers of its team: thread t keeps packs t, t + team, ...
 *
 * Loops have constant ends and are unrolled, so that no register is chosen by a computed index.
 * \tparam packed whether packs of the row start where a Pack may, and are whole.
 * \tparam packs of each thread.
 */
template <class T, bool packed, int packs>
struct KeptRow {
  static constexpr int kPacks = packs;
  static constexpr bool kIsKept = true;
  T values[kPacks][kPack];
  const T* from;
  int columns;

  __device__ KeptRow(const T* x, int64_t count) : from(x), columns(static_cast<int>(count)) {
    if (packed) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k)
        if (has(k, 0)) {
          const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(x + index(k, 0));
#pragma unroll
          for (int j = 0; j < kPack; ++j) values[k][j] = pack.values[j];
        } else {
#pragma unroll
          for (int j = 0; j < kPack; ++j) values[k][j] = 0;
        }
    } else {
#pragma unroll
      for (int k = 0; k < kPacks; ++k)
#pragma unroll
        for (int j = 0; j < kPack; ++j) values[k][j] = has(k, j) ? x[index(k, j)] : T(0);
    }
  }

  /*! \brief Where value (k, j) stands in the row. */
  __device__ int index(int k, int j) const {
    return (k * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kPack + j;
  }
  /*! \brief Whether it is one of the row's. */
  __device__ bool has(int k, int j) const { return index(k, packed ? 0 : j) < columns; }

  /*! \brief The Way of function(x) of all x; all threads get it. */
  template <class Way, class Function>
  __device__ T reduced(Function function) const {
    T totals[kPack];
#pragma unroll
    for (int j = 0; j < kPack; ++j) totals[j] = Way::start();
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
#pragma unroll
      for (int j = 0; j < kPack; ++j)
        if (has(k, j)) totals[j] = Way::both(totals[j], function(values[k][j]));
    return of_team<Way>(
        Way::both(Way::both(totals[0], totals[1]), Way::both(totals[2], totals[3])));
  }

  /*! \brief The sum of function(x) * y of all x and the y beside them. */
  template <class Function>
  __device__ T sum_of_products(const KeptRow& y, Function function) const {
    T total = 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
#pragma unroll
      for (int j = 0; j < kPack; ++j)
        if (has(k, j)) total += y.values[k][j] * function(values[k][j]);
    return of_team<Sum<T>>(total);
  }

  /*! \brief Each x becomes function(x). */
  template <class Function>
  __device__ void change(Function function) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
#pragma unroll
      for (int j = 0; j < kPack; ++j) values[k][j] = function(values[k][j]);
  }

  /*! \brief Writes function(x) of each x. */
  template <class Function>
  __device__ void write(T* y, Function function) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      Pack<T> pack;
#pragma unroll
      for (int j = 0; j < kPack; ++j) pack.values[j] = function(values[k][j]);
      if (packed) {
        if (has(k, 0)) *reinterpret_cast<Pack<T>*>(y + index(k, 0)) = pack;
      } else {
#pragma unroll
        for (int j = 0; j < kPack; ++j)
          if (has(k, j)) y[index(k, j)] = pack.values[j];
      }
    }
  }

  /*! \brief Where the first x stands that is `wanted`, or the first NaN; for all threads. */
  __device__ int64_t first_of(T wanted) const {
    int first = columns;
#pragma unroll
    for (int k = kPacks - 1; k >= 0; --k)
#pragma unroll
      for (int j = kPack - 1; j >= 0; --j)
        if (has(k, j) && (values[k][j] == wanted || is_nan(values[k][j]))) first = index(k, j);
    return of_team<Smallest<int>>(first);
  }
};

/*! \brief A row that is read from memory each time; it has the functions of KeptRow. */
template <class T>
struct FarRow {
  static constexpr bool kIsKept = false;
  const T* from;
  int64_t columns;

  __device__ FarRow(const T* x, int64_t count) : from(x), columns(count) {}

  template <class Way, class Function>
  __device__ T reduced(Function function) const {
    T totals[kPack];
    for (int j = 0; j < kPack; ++j) totals[j] = Way::start();
    const int64_t team = blockDim.x;
    int64_t i = threadIdx.x;
    for (; i + (kPack - 1) * team < columns; i += kPack * team) {
      T values[kPack];
      for (int j = 0; j < kPack; ++j) values[j] = from[i + j * team];
      for (int j = 0; j < kPack; ++j) totals[j] = Way::both(totals[j], function(values[j]));
    }
    for (; i < columns; i += team) totals[0] = Way::both(totals[0], function(from[i]));
    return of_team<Way>(
        Way::both(Way::both(totals[0], totals[1]), Way::both(totals[2], totals[3])));
  }

  template <class Function>
  __device__ T sum_of_products(const FarRow& y, Function function) const {
    T total = 0;
    for (int64_t i = threadIdx.x; i < columns; i += blockDim.x)
      total += y.from[i] * function(from[i]);
    return of_team<Sum<T>>(total);
  }

  template <class Function>
  __device__ void change(Function) {}

  template <class Function>
  __device__ void write(T* __restrict__ y, Function function) const {
    const T* __restrict__ x = from;
    for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) y[i] = function(x[i]);
  }

  __device__ int64_t first_of(T wanted) const {
    int64_t first = columns;
    for (int64_t i = threadIdx.x; i < columns && first == columns; i += blockDim.x)
      if (from[i] == wanted || is_nan(from[i])) first = i;
    return of_team<Smallest<int64_t>>(first);
  }
};

// What is made of one element.

template <class T>
struct Itself {
  __device__ T operator()(T x) const { return x; }
};

template <class T>
struct Scaled {
  T scale;
  __device__ T operator()(T x) const { return x * scale; }
};

/*! \brief exp(x - shift) */
template <class T>
struct Exponential {
  T shift;
  __device__ T operator()(T x) const { return exp(x - shift); }
};

template <class T>
struct ScaledExponential {
  T shift, scale;
  __device__ T operator()(T x) const { return exp(x - shift) * scale; }
};

/*! \brief x - most - total: the logarithm of the softmax. */
template <class T>
struct LogProbability {
  T most, total;
  __device__ T operator()(T x) const { return x - most - total; }
};

/*! \brief The LogProbability of a row. */
template <class T, class Row>
__device__ LogProbability<T> log_probability(const Row& x) {
  const T most = x.template reduced<Largest<T>>(Itself<T>());
  return {most, log(x.template reduced<Sum<T>>(Exponential<T>{most}))};
}

// The functions; `of` gets a row as KeptRow or FarRow.

template <class T>
struct SoftmaxRow {
  template <class Row>
  __device__ static void of(T* y, Row& x, const T*, RowOf) {
    const T most = x.template reduced<Largest<T>>(Itself<T>());
    x.change(Exponential<T>{most});
    if (Row::kIsKept) {
      const T scale = 1 / x.template reduced<Sum<T>>(Itself<T>());
      x.write(y, Scaled<T>{scale});
    } else {
      const T scale = 1 / x.template reduced<Sum<T>>(Exponential<T>{most});
      x.write(y, ScaledExponential<T>{most, scale});
    }
  }
};

template <class T>
struct LogSoftmaxRow {
  template <class Row>
  __device__ static void of(T* y, Row& x, const T*, RowOf) {
    x.write(y, log_probability<T>(x));
  }
};

template <class T>
struct LogSumExpRow {
  template <class Row>
  __device__ static void of(T* y, Row& x, const T*, RowOf) {
    const T most = x.template reduced<Largest<T>>(Itself<T>());
    const T shift = most - most == 0 ? most : T(0);
    const T total = log(x.template reduced<Sum<T>>(Exponential<T>{shift})) + shift;
    if (threadIdx.x == 0) y[0] = total;
  }
};

template <class T>
struct CrossEntropyRow {
  template <class Row>
  __device__ static void of(T* y, Row& x, const T* targets, RowOf row) {
    // Asked for before the threads wait for one another, so that both rows are on their way.
    const Row beside(targets + row.row * row.columns, row.columns);
    const LogProbability<T> log_of = log_probability<T>(x);
    const T sum = x.sum_of_products(beside, log_of);
    if (threadIdx.x == 0) y[0] = -sum;
  }
};

template <class T>
struct RowsKept<CrossEntropyRow<T>> {
  static constexpr int kCount = 2;
};

/*! \brief Targets are `second` everywhere, and `first` more at the class of the row. */
template <class T>
struct ClassEntropyRow {
  template <class Row>
  __device__ static void of(T* y, Row& x, const int64_t* classes, RowOf row) {
    const LogProbability<T> log_of = log_probability<T>(x);
    T all = 0;
    if (row.second != 0) all = x.template reduced<Sum<T>>(log_of);
    if (threadIdx.x != 0) return;
    const T hit = x.from[kept_inside(classes[row.row], row.columns)];
    y[0] = -static_cast<T>(row.first) * log_of(hit) - static_cast<T>(row.second) * all;
  }
};

/*! \brief Where the first element stands that is the Way of the row, or the first NaN. */
template <class T, class Way>
struct FirstOfRow {
  template <class Row>
  __device__ static void of(int64_t* y, Row& x, const T*, RowOf) {
    const int64_t first = x.first_of(x.template reduced<Way>(Itself<T>()));
    if (threadIdx.x == 0) y[0] = first;
  }
};

template <class T>
struct ProductOfOthersRow {
  template <class Row>
  __device__ static void of(T* y, Row& x, const T*, RowOf row) {
    if (threadIdx.x != 0) return;
    T before = 1, behind = 1;
    for (int64_t i = 0; i < row.columns; ++i) {
      y[i] = before;
      before *= x.from[i];
    }
    for (int64_t i = row.columns - 1; i >= 0; --i) {
      y[i] *= behind;
      behind *= x.from[i];
    }
  }
};

/*! \brief Packs that a thread keeps of a row. */
template <class Function, class T>
DLSYS_INLINE constexpr int packs_kept() {
  return PacksOfAThread<T>::kCount / RowsKept<Function>::kCount;
}

/*! \brief A team for each row from each.row on; there is no loop, whose invariants want registers.
 */
template <class Function, bool packed, class Out, class In, class Other>
__global__ void __launch_bounds__(most_of_a_team<In>(packed), 1)
    kept_rows_kernel(Out* out, const In* x, const Other* other, int64_t rows, RowOf each,
                     int64_t of_each) {
  each.row += static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (each.row >= rows) return;
  KeptRow<In, packed, packs_kept<Function, In>()> kept(x + each.row * each.columns, each.columns);
  Function::of(out + each.row * of_each, kept, other, each);
}

template <class Function, class Out, class In, class Other>
__global__ void __launch_bounds__(most_of_a_team<In>(true), 1)
    far_rows_kernel(Out* out, const In* x, const Other* other, int64_t rows, RowOf each,
                    int64_t of_each) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    FarRow<In> far(x + row * each.columns, each.columns);
    each.row = row;
    Function::of(out + row * of_each, far, other, each);
  }
}

/*! \brief A function of rows; `of_each` elements of the result for each. */
template <class Function, class Out, class In, class Other>
int rows(Out* out, const In* x, const Other* other, int64_t count, int64_t columns, int64_t of_each,
         double first, double second, cudaStream_t on) {
  if (count == 0) return 0;
  RowOf each = {0, columns, first, second};
  const bool packed = columns % kPack == 0 && is_aligned(reinterpret_cast<const char*>(x)) &&
                      is_aligned(reinterpret_cast<const char*>(other)) &&
                      is_aligned(reinterpret_cast<const char*>(out));
  const int64_t of_a_thread = packs_kept<Function, In>() * kPack;
  if (columns == 0 || columns > of_a_thread * most_of_a_team<In>(packed)) {
    far_rows_kernel<Function>
        <<<grid_of(count), most_of_a_team<In>(true), 0, on>>>(out, x, other, count, each, of_each);
    return launched();
  }
  const dim3 team = teams_of((columns + of_a_thread - 1) / of_a_thread);
  for (; each.row < count; each.row += kMostOfAGrid * team.y) {
    const int grid = grid_of((count - each.row + team.y - 1) / team.y);
    if (packed)
      kept_rows_kernel<Function, true><<<grid, team, 0, on>>>(out, x, other, count, each, of_each);
    else
      kept_rows_kernel<Function, false><<<grid, team, 0, on>>>(out, x, other, count, each, of_each);
  }
  return launched();
}

/*! \brief Wrong indices take the flag back; all of them write the same. */
static __global__ void check_indices_kernel(bool* all_inside, const int64_t* indices,
                                            const int64_t* count, int64_t total) {
  wait_for_predecessor();
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  bool inside = true;
  for (; i < total; i += step) inside = inside && indices[i] >= 0 && indices[i] < count[0];
  if (gridDim.x > 1) {
    if (!inside) all_inside[0] = false;
    return;
  }
  inside = __syncthreads_and(inside);
  if (threadIdx.x == 0) all_inside[0] = inside;
}

/*! \brief all_inside[0]: whether all are among 0 .. count[0] - 1. Few are looked at by one block,
 * and need no kernel before it. */
inline int check_indices(bool* all_inside, const int64_t* indices, const int64_t* count,
                         int64_t rows, int64_t columns, cudaStream_t on) {
  const int64_t total = rows * columns;
  const int blocks = total <= 16 * kThreads ? 1 : blocks_for(total);
  if (blocks > 1 && cudaMemsetAsync(all_inside, 1, sizeof(bool), on) != cudaSuccess) return -1;
  launch_early(check_indices_kernel, blocks, kThreads, 0, on, all_inside, indices, count, total);
  return launched();
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_GPU_ROWS_CUH_

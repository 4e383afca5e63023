/*!
 * \file gemm.cuh
 * \brief The matrix product of a compiled step: the top of the ladder in src/gemm, an epilogue.
 *
 * c = epilogue(a b). A block computes a tile of c, a warp a part of it, a thread of_rows x
 * of_columns, in registers. Slices of a and b come into shared memory by asynchronous copies, some
 * stages ahead, as they lie in memory: a slice whose lines lie along K is read four of K at a time,
 * another one four lines at a time, so nothing is transposed on the way. Where the tiles alone
 * would leave multiprocessors idle, K is cut in parts: the block that is last at a tile adds them
 * up in their order, so that each run gives the same bits.
 */
#ifndef DLSYS_BACKEND_GEMM_CUH_
#define DLSYS_BACKEND_GEMM_CUH_

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "gemm_pieces.cuh"
#include "numbers.h"

namespace dlsys {
namespace backend {

/*!
 * \brief How numbers come to their products: as they lie in memory; turned on their way to shared
 * memory, word by word, where they lie along K; or rounded to TF32, for tensor cores.
 */
enum How { kAsTheyLie, kTurned, kTf32 };

/*!
 * \brief Where parts of K are added up: in memory; or, on a GPU that has clusters, in the shared
 * memory of the parts' blocks, which then are a cluster; or nowhere, since K is in one part: sums
 * that are never read back may lie in any registers.
 */
enum Where { kInMemory, kInCluster, kWhole };

/*!
 * \brief A tile: rows, columns and depth of a slice; what a thread has of it; slices in flight;
 * blocks that a multiprocessor is to hold, from which the compiler has its limit of registers; how
 * numbers come to their products; and where parts of K are added up.
 */
template <int rows_, int columns_, int depth_, int of_rows_, int of_columns_, int stages_,
          int blocks_, How how = kAsTheyLie, Where where = kInMemory>
struct Block {
  static const int rows = rows_, columns = columns_, depth = depth_;
  static const int of_rows = of_rows_, of_columns = of_columns_;
  static const int stages = stages_, blocks = blocks_;
  static const bool turns = how == kTurned, tf32 = how == kTf32;
  static const bool in_cluster = where == kInCluster, is_cut = where != kWhole;
  static const int down = 4, along = 8;  // lanes of a warp
  static const int warps_along = columns / (along * of_columns);
  static const int threads = rows / (down * of_rows) * warps_along * 32;
  static const int values = of_rows * of_columns;
  static_assert(threads % columns == 0, "a thread adds up one column of b");
  static_assert(of_columns % 4 == 0, "sums of a thread are packs of four");
  static_assert(rows % (down * of_rows) == 0 && columns % (along * of_columns) == 0, "whole warps");
};

/*! \brief Sizes of a product, and how the operands lie. */
struct Extents {
  int m, n, k;
  int64_t lead_a, lead_b;  // from line to line; lines lie along K, or along m and n
  int parts;               // of K
  int of_part;             // slices of K in a part, all but the last one
};

/*!
 * \brief One operand's way into shared memory: `lines` rows or columns of it, `depth` of K.
 * \tparam along_k whether its lines lie along K in memory. They lie so in shared memory too, with
 * four floats between them, so that neighbouring lines begin in other banks, and for fragments,
 * whose threads read two of K each, eight; then other lines have four, since a thread's second of K
 * is the next line. A tile that turns them has all lines side by side.
 * \tparam packs whether four neighbours can be copied at once, everywhere.
 */
template <class T, int lines, bool along_k, bool packs>
struct Slice {
  static const int depth = T::depth, threads = T::threads;
  static const bool turns = along_k && T::turns, lies_along_k = along_k && !T::turns;
  static const int stride =
      lies_along_k ? depth + (T::tf32 ? 8 : 4) : lines + (T::tf32 || turns ? 4 : 0);
  static const int floats = lies_along_k ? lines * stride : depth * stride;
  static const int width = packs && !turns ? 4 : 1;
  static const int across = (along_k ? depth : lines) / width;  // copies of a row
  static const int all = along_k ? lines : depth;               // rows of copies
  static const bool is_even = threads % across == 0;         // a thread's copies are of one column
  static const int rows = is_even ? threads / across : all;  // of a round; the last may have fewer
  static const int rounds = (all + rows - 1) / rows, in_last = all - (rounds - 1) * rows;
  const float* from;
  int64_t apart, step;  // of what a thread copies in a slice; from slice to slice
  int outer, inner;     // what is left of the operand from here, across rows and along them
  int to;
  int own_rounds;

  /*! \brief Begins at line `first` of `count`, at k of `last`. */
  __device__ Slice(const float* x, int64_t lead, int first, int count, int k, int last,
                   int thread) {
    const int row = is_even ? thread / across : 0, column = is_even ? thread % across * width : 0;
    const int line = first + (along_k ? row : column), at = k + (along_k ? column : row);
    from = x + (along_k ? line * lead + at : at * lead + line);
    apart = is_even ? rows * lead : lead;
    step = along_k ? depth : depth * lead;
    outer = along_k ? count - line : last - at;
    inner = along_k ? last - at : count - line;
    to = is_even ? place(row, column) : thread;
    own_rounds = row < in_last ? rounds : rounds - 1;
  }

  /*! \brief Where a row's column lies in shared memory. */
  __device__ static int place(int row, int column) {
    return turns ? column * stride + row : row * stride + column;
  }

  /*! \brief Starts copies of the next slice; where the operand ends, plain stores fill it up. */
  __device__ void copy(float* shared) {
    if constexpr (is_even)
      copy_columns(shared);
    else
      for (int at = to; at < all * across; at += threads) {
        const int row = at / across, column = at % across * width;
        copy_at(shared + place(row, column), from + row * apart + column, outer - row,
                inner - column);
      }
    from += step;
    if (along_k)
      inner -= depth;
    else
      outer -= depth;
  }

  /*! \brief The same where all copies of a thread are of one column. */
  __device__ void copy_columns(float* shared) {
    const int down = place(rows, 0);  // from round to round
    const int last = in_last == rows ? rounds : own_rounds;
    if ((rounds - 1) * rows < outer && inner >= width) {
#pragma unroll
      for (int round = 0; round < rounds; ++round)
        if (in_last == rows || round < last)
          __pipeline_memcpy_async(shared + to + round * down, from + round * apart, 4 * width);
    } else {
      for (int round = 0; round < last; ++round)
        copy_at(shared + to + round * down, from + round * apart, outer - round * rows, inner);
    }
  }

  /*! \brief Copies neighbours, of which so many rows and columns are left. */
  __device__ static void copy_at(float* there, const float* x, int rows_left, int left) {
    if (rows_left > 0 && left >= width)
      __pipeline_memcpy_async(there, x, 4 * width);
    else
      for (int i = 0; i < width; ++i) there[i] = rows_left > 0 && i < left ? x[i] : 0;
  }
};

/*! \brief What is done with the sums of b's columns: nothing. */
struct NoSums {
  static const bool wanted = false;
  __device__ void operator()(int, float) const {}
};

/*! \brief Writes a part's sums, in packs of four; `at` is this thread's first. */
template <int of_rows, int of_columns>
__device__ inline void put_part(float4* at, int threads, const float (&sum)[of_rows][of_columns]) {
#pragma unroll
  for (int i = 0; i < of_rows; ++i)
#pragma unroll
    for (int j = 0; j < of_columns; j += 4)
      at[(i * of_columns + j) / 4 * threads] =
          make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}

/*! \brief Adds up all parts, in their order; reads of a part wait for none of the others. */
template <int of_rows, int of_columns>
__device__ inline void add_parts(float (&sum)[of_rows][of_columns], const float4* at, int threads,
                                 int parts, int64_t step) {
#pragma unroll
  for (int i = 0; i < of_rows; ++i)
#pragma unroll
    for (int j = 0; j < of_columns; ++j) sum[i][j] = 0;
#pragma unroll 2
  for (int part = 0; part < parts; ++part)
#pragma unroll
    for (int i = 0; i < of_rows; ++i)
#pragma unroll
      for (int j = 0; j < of_columns; j += 4) {
        const float4 x = at[part * step + (i * of_columns + j) / 4 * threads];
        sum[i][j] += x.x;
        sum[i][j + 1] += x.y;
        sum[i][j + 2] += x.z;
        sum[i][j + 3] += x.w;
      }
}

/*! \brief How slices of both operands lie, and how a warp multiplies them. */
template <class T, bool a_along_k, bool b_along_k, bool packs_a, bool packs_b>
struct Operands {
  typedef Slice<T, T::rows, a_along_k, packs_a> SliceA;
  typedef Slice<T, T::columns, b_along_k, packs_b> SliceB;
  static const int floats = SliceA::floats + SliceB::floats;  // of a stage
  typedef std::conditional_t<T::tf32, OfFragments<T, SliceA, SliceB>, OfFloats<T, SliceA, SliceB>>
      Warp;
};

/*!
 * \brief sum += a b of a part of K; adds this thread's share of a column of b to column_sum.
 *
 * While one piece of a slice is multiplied, the next one comes from shared memory; the last piece
 * hides the barrier, and the first one what is done for the copies.
 */
template <class T, class Both, bool adds>
__device__ inline void multiply_part(float (&sum)[T::of_rows][T::of_columns], float& column_sum,
                                     float* shared, const typename Both::Warp& warp,
                                     typename Both::SliceA of_a, typename Both::SliceB of_b,
                                     int slices, bool adds_columns) {
  typedef typename Both::Warp Warp;
  for (int stage = 0; stage < T::stages - 1; ++stage) {
    if (stage < slices) {
      of_a.copy(shared + stage * Both::floats);
      of_b.copy(shared + stage * Both::floats + Both::SliceA::floats);
    }
    __pipeline_commit();
  }
  typename Warp::A x[2];
  typename Warp::B y[2];
  __pipeline_wait_prior(T::stages - 2);
  __syncthreads();
  warp.read(x[0], y[0], shared, 0);
  int stage = 0, ahead = T::stages - 1;
  for (int slice = 0; slice < slices; ++slice) {
    const float* from = shared + stage * Both::floats;
    stage = stage + 1 < T::stages ? stage + 1 : 0;
    if constexpr (adds)
      if (adds_columns)
        for (int k = threadIdx.x / T::columns; k < T::depth; k += T::threads / T::columns)
          column_sum +=
              from[Both::SliceA::floats + k * Both::SliceB::stride + threadIdx.x % T::columns];
#pragma unroll
    for (int k = 0; k < T::depth; k += Warp::deep) {
      const int turn = k / Warp::deep % 2, next = (k + Warp::deep) % T::depth;
      if (next == 0) {
        __pipeline_wait_prior(T::stages - 2);
        __syncthreads();  // the next slice is there, and all have read this one
        from = shared + stage * Both::floats;
      }
      if (next != 0 || slice + 1 < slices) warp.read(x[turn ^ 1], y[turn ^ 1], from, next);
      if (k == 0) {
        if (slice + T::stages - 1 < slices) {
          of_a.copy(shared + ahead * Both::floats);
          of_b.copy(shared + ahead * Both::floats + Both::SliceA::floats);
        }
        __pipeline_commit();
        ahead = ahead + 1 < T::stages ? ahead + 1 : 0;
      }
      Warp::multiply(sum, x[turn], y[turn]);
    }
  }
}

#ifndef __CUDA_EMULATOR__
/*! \brief The largest cluster that each GPU with clusters holds, and the largest one of Hopper's.
 */
const int kEachHolds = 8, kLargestCluster = 16;

/*! \brief How many blocks along z a cluster has; 1 on a GPU that has none. */
__device__ inline int blocks_of_cluster() {
#if __CUDA_ARCH__ >= 900
  int found;
  asm("mov.u32 %0, %%cluster_nctaid.z;" : "=r"(found));
  return found;
#else
  return 1;
#endif
}

/*! \brief Waits for all blocks of the cluster; what they wrote before can be read after it. */
__device__ inline void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
#endif
}

/*! \brief Where that lies in another block's shared memory which lies at `own` here. */
__device__ inline unsigned place_in_block(const float* own, int block) {
  unsigned there = static_cast<unsigned>(__cvta_generic_to_shared(own));
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(there) : "r"(block));
#endif
  return there;
}

/*! \brief Four floats, or one, of another block's shared memory. */
__device__ inline float4 four_of_block(unsigned place) {
  float4 x = {};
#if __CUDA_ARCH__ >= 900
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(place)
               : "memory");
#endif
  return x;
}
__device__ inline float one_of_block(unsigned place) {
  float x = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(place) : "memory");
#endif
  return x;
}

/*!
 * \brief Puts a part of K into shared memory, and adds up the parts, in their order, of those packs
 * of four sums that are this block's: each `parts`-th. The first block adds up columns of b.
 */
template <class T>
__device__ inline void add_up_in_cluster(float (&sum)[T::of_rows][T::of_columns], float& column_sum,
                                         int parts, float* shared, bool adds_column) {
  float* const own = shared + 4 * threadIdx.x;
  float* const own_column = shared + T::rows * T::columns + threadIdx.x;
  __syncthreads();  // all have read the last slice
  put_part(reinterpret_cast<float4*>(own), T::threads, sum);
  if (adds_column) *own_column = column_sum;
  wait_for_cluster();
  if (adds_column && blockIdx.z == 0)
    for (int part = 1; part < parts; ++part)
      column_sum += one_of_block(place_in_block(own_column, part));
  int next = blockIdx.z;
#pragma unroll
  for (int i = 0; i < T::of_rows; ++i)
#pragma unroll
    for (int j = 0; j < T::of_columns; j += 4) {
      const int pack = (i * T::of_columns + j) / 4;
      if (pack != next) continue;
      next += parts;
      float4 total = {};
#pragma unroll 4
      for (int part = 0; part < parts; ++part) {
        const float4 x = four_of_block(place_in_block(own + 4 * pack * T::threads, part));
        total.x += x.x, total.y += x.y, total.z += x.z, total.w += x.w;
      }
      sum[i][j] = total.x, sum[i][j + 1] = total.y;
      sum[i][j + 2] = total.z, sum[i][j + 3] = total.w;
    }
  wait_for_cluster();  // nobody leaves whose sums are read
}
#endif

/*! \brief Puts a part of K where all are, and adds them up in the block that is the last one at its
 * tile. Returns whether this is it. */
template <class T>
__device__ inline bool add_up(float (&sum)[T::of_rows][T::of_columns], float& column_sum, int parts,
                              float* partial, unsigned* arrived, bool adds_column) {
  __shared__ bool is_last;
  const int thread = threadIdx.x, tile = blockIdx.y * gridDim.x + blockIdx.x;
  const int64_t step = static_cast<int64_t>(T::values / 4) * T::threads;
  const int64_t tiles = static_cast<int64_t>(gridDim.x) * gridDim.y;
  float4* const all = reinterpret_cast<float4*>(partial) + tile * parts * step + thread;
  float* const all_sums = partial + 4 * tiles * parts * step + tile * parts * T::columns + thread;
  put_part(all + blockIdx.z * step, T::threads, sum);
  if (adds_column) all_sums[blockIdx.z * T::columns] = column_sum;
  __threadfence();
  __syncthreads();
  if (thread == 0) is_last = atomicAdd(&arrived[tile], 1u) == static_cast<unsigned>(parts) - 1;
  __syncthreads();
  if (!is_last) return false;
  __threadfence();
  if (thread == 0) arrived[tile] = 0;
  add_parts(sum, all, T::threads, parts, step);
  if (adds_column) {
    column_sum = 0;
    for (int part = 0; part < parts; ++part) column_sum += all_sums[part * T::columns];
  }
  return true;
}

/*!
 * \brief The kernel. grid: tiles along n, tiles along m, parts of K.
 * \tparam Epilogue gets each element of c: (row, column, value).
 * \tparam Sums gets the sum of each column of b, which does not lie along K: (column, value).
 * \param partial room for parts x tiles x a tile's floats, and parts x columns of all tiles, if K
 * is cut.
 * \param arrived a counter for each tile, 0 before and after.
 */
template <class T, bool a_along_k, bool b_along_k, bool packs_a, bool packs_b, class Epilogue,
          class Sums>
__global__ __launch_bounds__(T::threads, T::blocks) void gemm_kernel(const float* __restrict__ a,
                                                                     const float* __restrict__ b,
                                                                     Extents e, Epilogue epilogue,
                                                                     Sums sums, float* partial,
                                                                     unsigned* arrived) {
  typedef Operands<T, a_along_k, b_along_k, packs_a, packs_b> Both;
  extern __shared__ __align__(16) float gemm_shared[];
  const int thread = threadIdx.x;
  const typename Both::Warp warp(thread);
  const int first_row = blockIdx.y * T::rows, first_column = blockIdx.x * T::columns;
  const int begin = blockIdx.z * e.of_part * T::depth;
  const int end = e.k < begin + e.of_part * T::depth ? e.k : begin + e.of_part * T::depth;
  const bool adds_columns = Sums::wanted && blockIdx.y == 0;
  float column_sum = 0;
  float sum[T::of_rows][T::of_columns] = {};
  const typename Both::SliceA of_a(a, e.lead_a, first_row, e.m, begin, end, thread);
  const typename Both::SliceB of_b(b, e.lead_b, first_column, e.n, begin, end, thread);
  multiply_part<T, Both, Sums::wanted>(sum, column_sum, gemm_shared, warp, of_a, of_b,
                                       (end - begin + T::depth - 1) / T::depth, adds_columns);
  if (adds_columns) {
    // Sums of columns: of each thread, then of all threads that have the same column.
    __syncthreads();
    gemm_shared[thread] = column_sum;
    __syncthreads();
    if (thread < T::columns)
      for (int other = thread + T::columns; other < T::threads; other += T::columns)
        column_sum += gemm_shared[other];
  }
  const bool has_column = adds_columns && thread < T::columns;
  int first_pack = 0, shares = 1;  // of the sums that this block gives
  bool is_added = !T::is_cut || e.parts == 1;
#ifndef __CUDA_EMULATOR__
  if constexpr (T::in_cluster)
    if (!is_added && blocks_of_cluster() == e.parts) {
      add_up_in_cluster<T>(sum, column_sum, e.parts, gemm_shared, has_column);
      is_added = true, first_pack = blockIdx.z, shares = e.parts;
    }
#endif
  if constexpr (T::is_cut)
    if (!is_added && !add_up<T>(sum, column_sum, e.parts, partial, arrived, has_column)) return;
  if (has_column && first_pack == 0 && first_column + thread < e.n)
    sums(first_column + thread, column_sum);
  warp.give(sum, first_pack, shares, [&](int row, int column, float value) {
    const int m = first_row + row, n = first_column + column;
    if (m < e.m && n < e.n) epilogue(m, n, value);
  });
}

#ifndef __CUDA_EMULATOR__
/*! \brief Whether the GPU holds a kernel's clusters of a launch. */
template <class Kernel>
bool holds_clusters(Kernel kernel, const cudaLaunchConfig_t& how, int blocks) {
  int device = 0, has_clusters = 0, held = 0;
  const bool is_held =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, device) == cudaSuccess &&
      has_clusters &&
      (blocks <= kEachHolds ||
       cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) ==
           cudaSuccess) &&
      cudaOccupancyMaxActiveClusters(&held, kernel, &how) == cudaSuccess && held > 0;
  cudaGetLastError();  // of what was asked in vain
  return is_held;
}

/*!
 * \brief Launches a kernel whose blocks of one tile are a cluster. Returns whether it was.
 * \param known what is known of the kernel's clusters of each size: 0 nothing, 1 held, -1 not.
 */
template <class Kernel, class... Given>
bool launch_in_clusters(signed char (&known)[kLargestCluster + 1], Kernel kernel, dim3 grid,
                        int threads, int bytes, cudaStream_t on, Given... given) {
  if (grid.z == 1 || grid.z > kLargestCluster) return false;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {1, 1, grid.z};
  const cudaLaunchConfig_t how = {grid, dim3(threads), static_cast<size_t>(bytes), on, &cluster, 1};
  if (known[grid.z] == 0) known[grid.z] = holds_clusters(kernel, how, grid.z) ? 1 : -1;
  if (known[grid.z] < 0) return false;
  cudaLaunchKernelEx(&how, kernel, given...);
  return true;
}
#endif

/*! \brief Launches it. */
template <class T, bool a_along_k, bool b_along_k, bool packs_a, bool packs_b, class Epilogue,
          class Sums>
void launch_gemm(const float* a, const float* b, Extents e, Epilogue epilogue, Sums sums,
                 float* partial, unsigned* arrived, cudaStream_t on) {
  const auto kernel = gemm_kernel<T, a_along_k, b_along_k, packs_a, packs_b, Epilogue, Sums>;
  int bytes = T::stages * 4 * Operands<T, a_along_k, b_along_k, packs_a, packs_b>::floats;
  const int of_sums = 4 * T::columns * (T::rows + 1);
  if (T::in_cluster && bytes < of_sums) bytes = of_sums;
  if (bytes > 47 * 1024)  // with what the kernel has besides, 48 KB need no leave
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const dim3 grid((e.n + T::columns - 1) / T::columns, (e.m + T::rows - 1) / T::rows, e.parts);
#ifndef __CUDA_EMULATOR__
  if constexpr (T::in_cluster) {
    static signed char known[kLargestCluster + 1];
    if (launch_in_clusters(known, kernel, grid, T::threads, bytes, on, a, b, e, epilogue, sums,
                           partial, arrived))
      return;
  }
#endif
  kernel<<<grid, T::threads, bytes, on>>>(a, b, e, epilogue, sums, partial, arrived);
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_GEMM_CUH_

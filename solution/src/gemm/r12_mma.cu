/*!
 * \file r12_mma.cu
 * \brief Rung 12: tensor cores, for bfloat16 and TF32, on any GPU since Ampere.
 *
 * Before: each thread multiplied its own numbers, one pair an instruction. Now a warp multiplies
 * tiles of 16 x 16 by one: a fragment is a tile that is spread over the registers of the warp's
 * threads, in an order that the hardware chose. The numbers have fewer bits, bfloat16 8 and TF32
 * 11, and are summed as float. float32 is never made TF32 unless it is asked for (-DTF32).
 *
 * Slices come by asynchronous copies where their lines allow 16 bytes at a time, as in the rungs
 * before, and lie in shared memory as in memory: a fragment may be read row by row or column by
 * column.
 *
 * in: a, b as bfloat16, or as float with -DTF32, of any size. out: c. grid: 128 x 128 elements a
 * block. cost: 2 m n k operations. next: Hopper, where four warps multiply from shared memory.
 */
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "ladder.h"

namespace {

namespace wmma = nvcuda::wmma;

#ifdef TF32
typedef float Element;
typedef wmma::precision::tf32 Kind;
const int kFragment = 8;  // of K, of one instruction
#else
typedef __nv_bfloat16 Element;
typedef __nv_bfloat16 Kind;
const int kFragment = 16;
#endif

const int kTile = 128, kDepth = 32, kStages = 3, kThreads = 256;
const int kWarpRows = 64, kWarpColumns = 32;  // of a warp: two warps down, four along
const int kPack = 16 / sizeof(Element);       // elements of a copy
const int kFloats = 16 * 20;                  // a fragment of c on its way to memory

/*! \brief A slice of an operand in shared memory; rows begin in other banks. */
template <bool along_k>
struct Slice {
  static const int rows = along_k ? kTile : kDepth, columns = along_k ? kDepth : kTile;
  static const int stride = columns + kPack, size = rows * stride;

  /*! \brief Starts the copies of a slice: zeros beyond the edges. */
  __device__ static void copy(Element* to, const Element* from, int first, int at_k, int lines,
                              int depth, bool packs) {
    const int row0 = along_k ? first : at_k, column0 = along_k ? at_k : first;
    const int last_row = along_k ? lines : depth, last_column = along_k ? depth : lines;
    if (packs) {
      for (int at = threadIdx.x; at < rows * columns / kPack; at += kThreads) {
        const int row = at / (columns / kPack), column = at % (columns / kPack) * kPack;
        const bool is_there = row0 + row < last_row && column0 + column < last_column;
        const int64_t begin = static_cast<int64_t>(row0 + row) * last_column + column0 + column;
        float4* const into = reinterpret_cast<float4*>(to + row * stride + column);
        if (is_there)
          __pipeline_memcpy_async(into, from + begin, 16);
        else
          *into = make_float4(0, 0, 0, 0);
      }
    } else {
      for (int at = threadIdx.x; at < rows * columns; at += kThreads) {
        const int row = at / columns, column = at % columns;
        const bool is_there = row0 + row < last_row && column0 + column < last_column;
        const int64_t begin = static_cast<int64_t>(row0 + row) * last_column + column0 + column;
        to[row * stride + column] = is_there ? from[begin] : Element(0.0f);
      }
    }
  }

  /*! \brief Where the element (line, k) lies. */
  __device__ static int at(int line, int k) {
    return along_k ? line * stride + k : k * stride + line;
  }
};

/*! \brief Rounds what a fragment holds to TF32; bfloat16 is as it shall be. */
template <class Fragment>
__device__ inline void prepare([[maybe_unused]] Fragment& x) {
#ifdef TF32
  for (int i = 0; i < x.num_elements; ++i) x.x[i] = wmma::__float_to_tf32(x.x[i]);
#endif
}

template <bool a_along_k, bool b_along_k>
__global__ __launch_bounds__(kThreads) void mma_kernel(const Element* a, const Element* b, float* c,
                                                       int m, int n, int k, bool packs) {
  typedef Slice<a_along_k> SliceA;
  typedef Slice<b_along_k> SliceB;
  typedef std::conditional_t<a_along_k, wmma::row_major, wmma::col_major> LayoutA;
  typedef std::conditional_t<b_along_k, wmma::col_major, wmma::row_major> LayoutB;
  extern __shared__ __align__(128) unsigned char raw[];
  Element* const shared = reinterpret_cast<Element*>(raw);
  const int size = SliceA::size + SliceB::size, slices = (k + kDepth - 1) / kDepth;
  const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / 4 * kWarpRows, warp_column = warp % 4 * kWarpColumns;
  wmma::fragment<wmma::accumulator, 16, 16, kFragment, float> sum[kWarpRows / 16]
                                                                 [kWarpColumns / 16];
  for (int i = 0; i < kWarpRows / 16; ++i)
    for (int j = 0; j < kWarpColumns / 16; ++j) wmma::fill_fragment(sum[i][j], 0.0f);
  for (int slice = 1 - kStages; slice < slices; ++slice) {
    const int next = slice + kStages - 1;
    if (slice >= 0) {
      __pipeline_wait_prior(kStages - 2);
      __syncthreads();  // this slice is there, and all have read the one before
    }
    if (next < slices) {
      Element* const to = shared + next % kStages * size;
      SliceA::copy(to, a, first_row, next * kDepth, m, k, packs);
      SliceB::copy(to + SliceA::size, b, first_column, next * kDepth, n, k, packs);
    }
    __pipeline_commit();
    if (slice < 0) continue;
    const Element* const of_a = shared + slice % kStages * size;
    const Element* const of_b = of_a + SliceA::size;
    for (int d = 0; d < kDepth; d += kFragment) {
      wmma::fragment<wmma::matrix_a, 16, 16, kFragment, Kind, LayoutA> x[kWarpRows / 16];
      wmma::fragment<wmma::matrix_b, 16, 16, kFragment, Kind, LayoutB> y[kWarpColumns / 16];
      for (int i = 0; i < kWarpRows / 16; ++i) {
        wmma::load_matrix_sync(x[i], of_a + SliceA::at(warp_row + i * 16, d), SliceA::stride);
        prepare(x[i]);
      }
      for (int j = 0; j < kWarpColumns / 16; ++j) {
        wmma::load_matrix_sync(y[j], of_b + SliceB::at(warp_column + j * 16, d), SliceB::stride);
        prepare(y[j]);
      }
      for (int i = 0; i < kWarpRows / 16; ++i)
        for (int j = 0; j < kWarpColumns / 16; ++j)
          wmma::mma_sync(sum[i][j], x[i], y[j], sum[i][j]);
    }
  }
  // The order within a fragment is not known, so each goes to memory by way of shared memory.
  __syncthreads();
  float* const own = reinterpret_cast<float*>(raw) + warp * kFloats;
  for (int i = 0; i < kWarpRows / 16; ++i)
    for (int j = 0; j < kWarpColumns / 16; ++j) {
      wmma::store_matrix_sync(own, sum[i][j], 20, wmma::mem_row_major);
      __syncwarp();
      for (int at = lane; at < 256; at += 32) {
        const int row = first_row + warp_row + i * 16 + at / 16;
        const int column = first_column + warp_column + j * 16 + at % 16;
        if (row < m && column < n)
          c[static_cast<int64_t>(row) * n + column] = own[at / 16 * 20 + at % 16];
      }
      __syncwarp();
    }
}

template <bool a_along_k, bool b_along_k>
cudaError_t launch(const void* a, const void* b, float* c, int m, int n, int k, void* stream) {
  const int bytes = kStages * (Slice<a_along_k>::size + Slice<b_along_k>::size) *
                    static_cast<int>(sizeof(Element));
  const cudaError_t error = cudaFuncSetAttribute(
      mma_kernel<a_along_k, b_along_k>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  const bool packs = (a_along_k ? k : m) % kPack == 0 && (b_along_k ? k : n) % kPack == 0;
  const dim3 grid(ladder::tiles(n, kTile), ladder::tiles(m, kTile));
  mma_kernel<a_along_k, b_along_k><<<grid, kThreads, bytes, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const Element*>(a), static_cast<const Element*>(b), c, m, n, k, packs);
  return cudaGetLastError();
}

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  if (transposes_a && transposes_b) return launch<false, true>(a, b, c, m, n, k, stream);
  if (transposes_a) return launch<false, false>(a, b, c, m, n, k, stream);
  if (transposes_b) return launch<true, true>(a, b, c, m, n, k, stream);
  return launch<true, false>(a, b, c, m, n, k, stream);
}

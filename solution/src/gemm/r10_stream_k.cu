/*!
 * \file r10_stream_k.cu
 * \brief Rung 10: each block has the same share of all slices of all tiles.
 *
 * Before: tiles times parts are seldom a multiple of what the GPU holds at once, so that in the
 * last wave most multiprocessors wait; and each tile was cut, needed or not. Now there are as many
 * blocks as the GPU holds. Each takes whole tiles first, as many as are there for every block. All
 * slices of K of the tiles that are left stand in one row, and a block takes what follows the block
 * before, from the middle of a tile to the middle of another (Osama et al., 2023). A tile that lies
 * in one share goes to c at once; of others the block that comes last adds the parts up in their
 * order, so that each run gives the same bits.
 *
 * On an H200 that is a lesson, and no gain: of n = 4096 the last wave costs 4 % of the cycles, and
 * the same slices take 4 % more of them inside a loop over tiles.
 *
 * in: a, b of any size. out: c. grid: blocks that the GPU holds. cost: 2 m n k operations, and 16
 * bytes for each element of a block's first and last tile. next: what is done with c before it goes
 * to memory.
 */
#include "own.cuh"

/*! \brief Of tiles that would go whole, so many for each block are cut all the same. */
extern "C" int gemm_cut;
int gemm_cut = 0;

namespace {

using ladder::Tile;

/*! \brief Floats of a tile's part. */
const int64_t kPart = static_cast<int64_t>(Tile::values) * Tile::threads;

/*! \brief Some slices of a tile that follow each other. */
struct Piece {
  int64_t tile;
  int from, count;
};

/*! \brief Tiles that a block takes whole, each `blocks`-th; then all slices of all other tiles in
 * one row, and the blocks' shares of it. */
struct Row {
  int slices, along;    // of a tile; tiles along n
  int64_t whole;        // tiles, a multiple of the grid
  int64_t all, shares;  // slices in the row, and at most as many shares

  /*! \brief Gives a block its next piece; `step` and `at` are what it had. Returns whether there is
   * one. */
  __device__ bool next(Piece& piece, int64_t& step, int64_t& at) const {
    if (step < whole) {
      piece = {step + blockIdx.x, 0, slices};
      step += gridDim.x;
      return true;
    }
    const int64_t end = begin(blockIdx.x + 1);
    if (at >= end) return false;
    const int64_t tile = at / slices;
    const int from = static_cast<int>(at - tile * slices);
    piece = {whole + tile, from,
             static_cast<int>(min(static_cast<int64_t>(slices - from), end - at))};
    at += piece.count;
    return true;
  }

  /*! \brief Where a block's share begins. */
  __device__ int64_t begin(int64_t block) const { return all * min(block, shares) / shares; }

  /*! \brief The block that has a slice. */
  __device__ int64_t block_of(int64_t slice) const { return ((slice + 1) * shares - 1) / all; }

  /*! \brief Room for a block's part of a tile: it has a first tile, in which its share begins, and
   * a last one, of which it has the beginning.
   */
  __device__ float4* room(float* parts, int64_t block, int64_t tile) const {
    const int64_t place = 2 * block + (begin(block) < tile * slices);
    return reinterpret_cast<float4*>(parts + place * kPart) + threadIdx.x;
  }
};

/*! \brief Puts a block's part of a tile where all are; the last block there gets their sum. Returns
 * whether this is it. */
__device__ bool add_up(float (&sum)[Tile::of_rows][Tile::of_columns], const Row& row, int64_t tile,
                       float* parts, unsigned* arrived) {
  __shared__ bool is_last;
  tile -= row.whole;
  const int64_t first = row.block_of(tile * row.slices);
  const int64_t last = row.block_of((tile + 1) * row.slices - 1);
  ladder::put_part(row.room(parts, blockIdx.x, tile), Tile::threads, sum);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0)
    is_last = atomicAdd(&arrived[tile], 1u) == static_cast<unsigned>(last - first);
  __syncthreads();
  if (!is_last) return false;
  __threadfence();
  if (threadIdx.x == 0) arrived[tile] = 0;
  ladder::add_parts(sum, row.room(parts, first, tile), Tile::threads, 1, 0);
  for (int64_t block = first + 1; block <= last; ++block) {
    float more[Tile::of_rows][Tile::of_columns];
    ladder::add_parts(more, row.room(parts, block, tile), Tile::threads, 1, 0);
    for (int i = 0; i < Tile::of_rows; ++i)
      for (int j = 0; j < Tile::of_columns; ++j) sum[i][j] += more[i][j];
  }
  return true;
}

/*!
 * \brief The kernel.
 * \param parts room for two tiles of each block.
 * \param arrived a counter for each tile, 0 before and after.
 */
template <bool a_along_k, bool b_along_k, bool packs>
__global__ __launch_bounds__(Tile::threads,
                             Tile::blocks) void stream_k(const float* __restrict__ a,
                                                         const float* __restrict__ b,
                                                         ladder::Extents e, ladder::Store store,
                                                         Row row, float* parts, unsigned* arrived) {
  typedef ladder::Operands<Tile, a_along_k, b_along_k, packs, packs> Both;
  extern __shared__ __align__(16) float gemm_shared[];
  const int thread = threadIdx.x;
  const typename Both::Warp warp(thread);
  Piece piece;
  for (int64_t step = 0, at = row.begin(blockIdx.x); row.next(piece, step, at);) {
    const int first_row = static_cast<int>(piece.tile / row.along) * Tile::rows;
    const int first_column = static_cast<int>(piece.tile % row.along) * Tile::columns;
    const int k = piece.from * Tile::depth, last = min(e.k, k + piece.count * Tile::depth);
    float none = 0, sum[Tile::of_rows][Tile::of_columns] = {};
    const typename Both::SliceA of_a(a, e.lead_a, first_row, e.m, k, last, thread);
    const typename Both::SliceB of_b(b, e.lead_b, first_column, e.n, k, last, thread);
    ladder::multiply_part<Tile, Both, false>(sum, none, gemm_shared, warp, of_a, of_b, piece.count,
                                             false);
    __syncthreads();  // all have read the last slice
    if (piece.count < row.slices && !add_up(sum, row, piece.tile, parts, arrived)) continue;
    warp.give(sum, 0, 1, [&](int i, int j, float value) {
      if (first_row + i < e.m && first_column + j < e.n)
        store(first_row + i, first_column + j, value);
    });
  }
}

template <bool a_along_k, bool b_along_k, bool packs>
void launch(const float* a, const float* b, const ladder::Extents& e, float* c, const Row& row,
            int64_t blocks, const ladder::Room& room, cudaStream_t on) {
  const int bytes =
      Tile::stages * 4 * ladder::Operands<Tile, a_along_k, b_along_k, packs, packs>::floats;
  if (bytes > 47 * 1024)
    cudaFuncSetAttribute(stream_k<a_along_k, b_along_k, packs>,
                         cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  const ladder::Store store = {c, e.n};
  stream_k<a_along_k, b_along_k, packs>
      <<<static_cast<unsigned>(blocks), Tile::threads, bytes, on>>>(a, b, e, store, row,
                                                                    room.floats, room.counters);
}

template <bool packs>
void launch_as_they_lie(bool transposes_a, bool transposes_b, const float* a, const float* b,
                        const ladder::Extents& e, float* c, const Row& row, int64_t blocks,
                        const ladder::Room& room, cudaStream_t on) {
  if (transposes_a && transposes_b)
    launch<false, true, packs>(a, b, e, c, row, blocks, room, on);
  else if (transposes_a)
    launch<false, false, packs>(a, b, e, c, row, blocks, room, on);
  else if (transposes_b)
    launch<true, true, packs>(a, b, e, c, row, blocks, room, on);
  else
    launch<true, false, packs>(a, b, e, c, row, blocks, room, on);
}

}  // namespace

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  static ladder::Room room;
  const int down = ladder::tiles(m, Tile::rows), along = ladder::tiles(n, Tile::columns);
  const int slices = k > 0 ? ladder::tiles(k, Tile::depth) : 1;
  const int64_t count = static_cast<int64_t>(down) * along;
  if (count == 0) return cudaSuccess;
  // A share has a slice at least; gemm_parts is for tests, and says how many shares there are.
  const int64_t held = gemm_parts ? gemm_parts : ladder::kProcessors * Tile::blocks;
  const int64_t blocks = held < count * slices ? held : count * slices;
  const int64_t waves = count / blocks;
  const int64_t whole = (waves > gemm_cut ? waves - gemm_cut : 0) * blocks;
  const int64_t all = (count - whole) * slices;
  const Row row = {slices, along, whole, all, all == 0 || blocks < all ? blocks : all};
  const cudaError_t error = room.grow(2 * row.shares * kPart, count);
  if (error != cudaSuccess) return error;
  const ladder::Extents e = {m, n, k, transposes_a ? m : k, transposes_b ? k : n, 1, slices};
  const float *x = static_cast<const float*>(a), *y = static_cast<const float*>(b);
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  if (e.lead_a % 4 == 0 && e.lead_b % 4 == 0)
    launch_as_they_lie<true>(transposes_a, transposes_b, x, y, e, c, row, blocks, room, on);
  else
    launch_as_they_lie<false>(transposes_a, transposes_b, x, y, e, c, row, blocks, room, on);
  return cudaGetLastError();
}

/*!
 * \file r09_split_k.cu
 * \brief Rung 9: K is cut in parts.
 *
 * Before: a small c has few tiles: 1000 x 256 in tiles of 64 x 64 are 64, and half of 132
 * multiprocessors have nothing to do. Now K is cut in parts, each a block's work. The block that
 * comes last at a tile adds the parts up in their order, so that each run gives the same bits; it
 * costs a trip of c's tiles to memory and back.
 *
 * A Hopper GPU can do without the trip (kInCluster in TILE): the blocks of a tile's parts are a
 * cluster, which runs at one time, and read each other's shared memory. Each block adds up some of
 * the tile's sums. Of 256 x 100 x 1,000 that takes 6.5 us instead of 7.3 on an H200.
 *
 * in: a, b of any size. out: c. grid: tiles of c, times parts. cost: 2 m n k operations, and 8 m n
 * bytes a part. next: shares of all work that are alike.
 */
#include "own.cuh"

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  const ladder::Store store = {c, n};
  return ladder::multiply(a, b, store, m, n, k, transposes_a, transposes_b, ladder::parts_of(m, n),
                          stream);
}

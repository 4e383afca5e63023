/*!
 * \file r08_warp_tiles.cu
 * \brief Rung 8: warps have tiles too, and operands are used as they lie.
 *
 * Before: which threads of a warp read which words was left to chance, and an operand that lies
 * along K was turned on its way, word by word. Now
 *
 * - a warp has a tile of 4 x 8 threads, whose lanes are numbered so that half a warp reads four
 * words each in one go (see gemm_kernel);
 * - all copies are of 16 bytes. A slice lies in shared memory as in memory; of one that lies along
 * K a thread reads four of K at a time, which is as many instructions as four lines at a time.
 *
 * It is the kernel of compiled steps, src/backend/gemm.cuh, with K in one part.
 *
 * in: a, b of any size. out: c. grid: a tile a block, of any size that TILE names.
 * cost: as before. next: shapes whose tiles are too few.
 */
#include "own.cuh"

extern "C" int gemm(const void* a, const void* b, float* c, int m, int n, int k, int transposes_a,
                    int transposes_b, void* stream) {
  const ladder::Store store = {c, n};
  return ladder::multiply(a, b, store, m, n, k, transposes_a, transposes_b, 1, stream);
}

/*!
 * \file own.cuh
 * \brief Calls src/backend/gemm.cuh, the kernel of compiled steps, with a tile and an epilogue.
 */
#ifndef DLSYS_GEMM_OWN_CUH_
#define DLSYS_GEMM_OWN_CUH_

#include "../backend/gemm.cuh"
#include "ladder.h"

#ifndef TILE
#define TILE 128, 128, 16, 8, 8, 3, 1
#endif

/*! \brief Parts of K; 0 for as many as keep the multiprocessors busy. */
extern "C" int gemm_parts;
int gemm_parts = 0;

namespace ladder {

using namespace dlsys::backend;  // TILE may name a How
typedef Block<TILE> Tile;

const int kProcessors = 132, kLeastDepth = 32;

/*! \brief Room for parts of sums, and counters that are 0; kept for the next call. */
struct Room {
  float* floats = nullptr;
  unsigned* counters = nullptr;
  int64_t size = 0, tiles = 0;

  cudaError_t grow(int64_t to_size, int64_t to_tiles) {
    cudaError_t error = cudaSuccess;
    if (to_size > size) {
      cudaFree(floats);
      size = to_size;
      error = cudaMalloc(&floats, size * sizeof(float));
    }
    if (error == cudaSuccess && to_tiles > tiles) {
      cudaFree(counters);
      tiles = to_tiles;
      error = cudaMalloc(&counters, tiles * sizeof(unsigned));
      if (error == cudaSuccess) error = cudaMemset(counters, 0, tiles * sizeof(unsigned));
    }
    return error;
  }
};

template <bool a_along_k, bool b_along_k, class Epilogue>
void launch(const float* a, const float* b, Extents e, Epilogue epilogue, const Room& room,
            cudaStream_t on) {
  const dlsys::backend::NoSums sums;
  const bool packs_a = e.lead_a % 4 == 0, packs_b = e.lead_b % 4 == 0;
  if (packs_a && packs_b)
    dlsys::backend::launch_gemm<Tile, a_along_k, b_along_k, true, true>(
        a, b, e, epilogue, sums, room.floats, room.counters, on);
  else if (packs_a)
    dlsys::backend::launch_gemm<Tile, a_along_k, b_along_k, true, false>(
        a, b, e, epilogue, sums, room.floats, room.counters, on);
  else
    dlsys::backend::launch_gemm<Tile, a_along_k, b_along_k, false, false>(
        a, b, e, epilogue, sums, room.floats, room.counters, on);
}

/*! \brief Parts of K: as they were set, else as many as keep the multiprocessors busy. */
inline int parts_of(int m, int n) {
  if (gemm_parts != 0 || m == 0 || n == 0) return gemm_parts;
  return kProcessors * Tile::blocks / (tiles(m, Tile::rows) * tiles(n, Tile::columns));
}

/*! \brief c = epilogue(op(a) op(b)), with K in about so many parts. */
template <class Epilogue>
int multiply(const void* a, const void* b, Epilogue epilogue, int m, int n, int k,
             bool transposes_a, bool transposes_b, int parts, void* stream) {
  static Room room;
  const int count = tiles(m, Tile::rows) * tiles(n, Tile::columns);
  const int slices = k > 0 ? tiles(k, Tile::depth) : 1;
  if (count == 0) return cudaSuccess;
  if (parts > k / kLeastDepth) parts = k / kLeastDepth;
  if (parts < 1 || !Tile::is_cut) parts = 1;
  const int of_part = tiles(slices, parts);
  parts = tiles(slices, of_part);
  if (parts > 1) {
    const int64_t values = static_cast<int64_t>(parts) * count * (Tile::rows + 1) * Tile::columns;
    const cudaError_t error = room.grow(values, count);
    if (error != cudaSuccess) return error;
  }
  const Extents e = {m, n, k, transposes_a ? m : k, transposes_b ? k : n, parts, of_part};
  const float *x = static_cast<const float*>(a), *y = static_cast<const float*>(b);
  cudaStream_t on = static_cast<cudaStream_t>(stream);
  if (transposes_a && transposes_b)
    launch<false, true>(x, y, e, epilogue, room, on);
  else if (transposes_a)
    launch<false, false>(x, y, e, epilogue, room, on);
  else if (transposes_b)
    launch<true, true>(x, y, e, epilogue, room, on);
  else
    launch<true, false>(x, y, e, epilogue, room, on);
  return cudaGetLastError();
}

/*! \brief The plain epilogue. */
struct Store {
  float* c;
  int64_t row;
  __device__ void operator()(int m, int n, float value) const { c[m * row + n] = value; }
};

}  // namespace ladder

#endif  // DLSYS_GEMM_OWN_CUH_

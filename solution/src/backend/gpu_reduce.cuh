/*!
 * \file gpu_reduce.cuh
 * \brief The GPU back end's reductions over axes, see the instruction Reduce.
 *
 * Partial results are combined in an order that sizes alone decide: no atomics, so that each run
 * gives the same bits.
 */
#ifndef DLSYS_BACKEND_GPU_REDUCE_CUH_
#define DLSYS_BACKEND_GPU_REDUCE_CUH_

#include "gpu_loops.cuh"

namespace dlsys {
namespace backend {

/*! \brief Elements that one thread reduces before those of a team are combined. */
const int64_t kReducedByAThread = 16;
/*! \brief Packs that a thread asks for before it adds up the first. */
const int kPacksAtOnce = 4;
/*! \brief Blocks that a reduction is cut in chunks for; MOST_PARTIAL of gpu.py is for these. */
const int64_t kBlocksOfACut = 2048;

/*! \brief How a reduction is cut, and whether its inputs are read in packs. */
struct Cut {
  int64_t chunks;
  int64_t length;  // of a chunk, a multiple of kPack
  bool packed;
};

/*! \brief Chunks of at least `least` elements, no more than fill the GPU with `blocks` of each. */
inline Cut cut(int64_t blocks, int64_t length, int64_t least, bool packed) {
  const int64_t wanted = std::max<int64_t>(1, kBlocksOfACut / blocks);
  const int64_t chunks = std::max<int64_t>(1, std::min(wanted, length / least));
  const int64_t each = (length + chunks - 1) / chunks;
  return {chunks, (each + kPack - 1) / kPack * kPack, packed};
}

/*! \brief Where a thread finds the inputs in iteration i of the reduced loops. */
template <int inputs>
__device__ void find(const Loops<inputs>& reduced, int64_t i, const int64_t* at, int64_t* from) {
  for (int k = 0; k < inputs; ++k) from[k] = at[k];
  if (reduced.rank == 1)
    for (int k = 0; k < inputs; ++k) from[k] += i * reduced.strides[k][0];
  else
    reduced.add_offsets(i, from);
}

/*! \brief The Way of a thread's part of begin .. end - 1, if its team reads it in packs. */
template <class T, class Way, int inputs, class Load>
__device__ T reduced_in_packs(const Loops<inputs>& reduced, const int64_t* at, int64_t begin,
                              int64_t end, const Load& load) {
  T totals[kPack];
  for (int j = 0; j < kPack; ++j) totals[j] = Way::start();
  const int64_t step = static_cast<int64_t>(blockDim.x) * kPack;
  int64_t i = begin + static_cast<int64_t>(threadIdx.x) * kPack, from[inputs];
  for (; i + (kPacksAtOnce - 1) * step + kPack <= end; i += kPacksAtOnce * step) {
    T values[kPacksAtOnce][kPack];
    for (int u = 0; u < kPacksAtOnce; ++u) {
      find(reduced, i + u * step, at, from);
      load.pack(from, values[u]);
    }
    for (int u = 0; u < kPacksAtOnce; ++u)
      for (int j = 0; j < kPack; ++j) totals[j] = Way::both(totals[j], values[u][j]);
  }
  for (; i + kPack <= end; i += step) {
    T values[kPack];
    find(reduced, i, at, from);
    load.pack(from, values);
    for (int j = 0; j < kPack; ++j) totals[j] = Way::both(totals[j], values[j]);
  }
  const int64_t last = begin + (end - begin) / kPack * kPack + threadIdx.x;
  if (last < end) {
    find(reduced, last, at, from);
    totals[0] = Way::both(totals[0], load(from));
  }
  return Way::both(Way::both(totals[0], totals[1]), Way::both(totals[2], totals[3]));
}

/*! \brief Each team reduces one chunk for one output; its threads lie along the reduced axes. */
template <class T, class Way, int inputs, class Load, class Store>
__global__ void reduce_rows_kernel(Loops<inputs + 1> kept, Loops<inputs> reduced, int64_t length,
                                   Cut cut, Load load, Store store, T* partial) {
  const int64_t items = kept.size() * cut.chunks;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; item < items;
       item += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    const int64_t output = cut.chunks == 1 ? item : item / cut.chunks;
    int64_t at[inputs + 1] = {};
    kept.add_offsets(output, at);
    const int64_t begin = (item - output * cut.chunks) * cut.length;
    const int64_t end = begin + cut.length < length ? begin + cut.length : length;
    T total = Way::start();
    if (cut.packed) {
      total = reduced_in_packs<T, Way, inputs>(reduced, at + 1, begin, end, load);
    } else {
      int64_t from[inputs];
      for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        find(reduced, i, at + 1, from);
        total = Way::both(total, load(from));
      }
    }
    total = of_team<Way>(total);
    if (threadIdx.x == 0) {
      if (cut.chunks > 1)
        partial[item] = total;
      else
        store(at[0], total);
    }
  }
}

/*! \brief Outputs of a block of columns: a pack for each thread of a warp. */
const int kColumnsOfABlock = kWarp * kPack;
const int kRowsOfABlock = kThreads / kWarp;

/*! \brief A thread's sums of 4 columns, over each 8th row of begin .. end - 1. */
template <class T, class Way, int inputs, class Load>
__device__ void reduce_columns(const Loops<inputs>& reduced, const int64_t (*at)[inputs + 1],
                               int64_t begin, int64_t end, int columns, bool packed,
                               const Load& load, T* totals) {
  int64_t from[inputs];
  if (packed) {
    int64_t i = begin;
    for (; i + (kPacksAtOnce - 1) * kRowsOfABlock < end; i += kPacksAtOnce * kRowsOfABlock) {
      T values[kPacksAtOnce][kPack];
      for (int u = 0; u < kPacksAtOnce; ++u) {
        find(reduced, i + u * kRowsOfABlock, at[0] + 1, from);
        load.pack(from, values[u]);
      }
      for (int u = 0; u < kPacksAtOnce; ++u)
        for (int j = 0; j < kPack; ++j) totals[j] = Way::both(totals[j], values[u][j]);
    }
    for (; i < end; i += kRowsOfABlock) {
      T values[kPack];
      find(reduced, i, at[0] + 1, from);
      load.pack(from, values);
      for (int j = 0; j < kPack; ++j) totals[j] = Way::both(totals[j], values[j]);
    }
  } else {
    for (int64_t i = begin; i < end; i += kRowsOfABlock)
      for (int j = 0; j < kPack; ++j)
        if (j < columns) {
          find(reduced, i, at[j] + 1, from);
          totals[j] = Way::both(totals[j], load(from));
        }
  }
}

/*! \brief Each block reduces one chunk for 128 outputs; neighbouring threads have neighbours. */
template <class T, class Way, int inputs, class Load, class Store>
__global__ void reduce_columns_kernel(Loops<inputs + 1> kept, Loops<inputs> reduced, int64_t length,
                                      Cut cut, Load load, Store store, T* partial) {
  __shared__ T all[kRowsOfABlock][kColumnsOfABlock];
  const int64_t outer = kept.size();
  const int64_t tiles = (outer + kColumnsOfABlock - 1) / kColumnsOfABlock;
  const int lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp;
  // Thread's columns: a pack; or each 32nd, so that neighbours read neighbours.
  const int first = cut.packed ? lane * kPack : lane, step = cut.packed ? 1 : kWarp;
  for (int64_t item = blockIdx.x; item < tiles * cut.chunks; item += gridDim.x) {
    const int64_t tile = cut.chunks == 1 ? item : item / cut.chunks;
    const int64_t chunk = item - tile * cut.chunks, output = tile * kColumnsOfABlock + first;
    const int64_t begin = chunk * cut.length;
    const int64_t end = begin + cut.length < length ? begin + cut.length : length;
    int64_t at[kPack][inputs + 1] = {};
    int columns = 0;
    for (int j = 0; j < kPack; ++j)
      if (output + j * step < outer) {
        kept.add_offsets(output + j * step, at[j]);
        columns = j + 1;
      }
    T totals[kPack];
    for (int j = 0; j < kPack; ++j) totals[j] = Way::start();
    if (columns > 0)
      reduce_columns<T, Way, inputs>(reduced, at, begin + row, end, columns, cut.packed, load,
                                     totals);
    for (int j = 0; j < kPack; ++j) all[row][first + j * step] = totals[j];
    __syncthreads();
    const int column = threadIdx.x;
    const int64_t mine = tile * kColumnsOfABlock + column;
    if (column < kColumnsOfABlock && mine < outer) {
      T total = all[0][column];
      for (int r = 1; r < kRowsOfABlock; ++r) total = Way::both(total, all[r][column]);
      if (cut.chunks > 1) {
        partial[mine * cut.chunks + chunk] = total;
      } else {
        int64_t to[inputs + 1] = {};
        kept.add_offsets(mine, to);
        store(to[0], total);
      }
    }
    __syncthreads();
  }
}

/*! \brief The second part of a reduction that was cut: a team for the chunks of each output. */
template <class T, class Way, int inputs, class Store>
__global__ void combine_kernel(Loops<inputs + 1> kept, int64_t chunks, Store store,
                               const T* partial) {
  const int64_t outer = kept.size();
  for (int64_t output = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; output < outer;
       output += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    T total = Way::start();
    for (int64_t c = threadIdx.x; c < chunks; c += blockDim.x)
      total = Way::both(total, partial[output * chunks + c]);
    total = of_team<Way>(total);
    if (threadIdx.x == 0) {
      int64_t at[inputs + 1] = {};
      kept.add_offsets(output, at);
      store(at[0], total);
    }
  }
}

/*!
 * \brief Whether inputs may be read in packs along the last of one group of loops.
 * \param along the loops that have that axis, `across` the others; each has the inputs behind
 *              `before_along` and `before_across` other operands.
 */
template <int inputs, class Along, class Across>
bool are_packed(char* const* data, const Along& along, int before_along, const Across& across,
                int before_across) {
  for (int k = 0; k < inputs; ++k) {
    const int64_t step = along.step(k + before_along);
    if (step == 0) continue;
    if (step != 1 || !is_aligned(data[k + 1])) return false;
    if (!along.keeps_packs(k + before_along, along.rank - 1)) return false;
    if (!across.keeps_packs(k + before_across, across.rank)) return false;
  }
  return true;
}

/*!
 * \brief A reduction; see the instruction Reduce.
 * \param by_rows whether threads lie along the reduced axes, or along the kept ones.
 * \param partial room for the partial results.
 */
template <class T, class Way, int inputs, bool by_rows, class Load, class Store>
int reduce(char* const* data, const int64_t* n, Load load, Store store, T* partial,
           cudaStream_t on) {
  const Loops<inputs + 1> kept(n);
  const Loops<inputs> reduced(n);
  const int64_t outer = kept.size(), length = reduced.size();
  if (outer == 0) return 0;
  int64_t chunks;
  if (by_rows) {
    // A pack does not cross from one row of the innermost loop to the next.
    const bool packed = are_packed<inputs>(data, reduced, 0, kept, 1) &&
                        (reduced.rank == 1 || reduced.inner() % kPack == 0);
    const Cut parts = cut(outer, length, kThreads * kReducedByAThread, packed && Load::kPacks);
    const dim3 team = teams_of(length <= kWarp * kReducedByAThread ? kWarp : kThreads);
    const int64_t blocks = (outer * parts.chunks + team.y - 1) / team.y;
    reduce_rows_kernel<T, Way, inputs>
        <<<grid_of(blocks), team, 0, on>>>(kept, reduced, length, parts, load, store, partial);
    chunks = parts.chunks;
  } else {
    const bool packed = are_packed<inputs>(data, kept, 1, reduced, 0) &&
                        kept.inner() % kPack == 0 && outer >= kColumnsOfABlock;
    const int64_t tiles = (outer + kColumnsOfABlock - 1) / kColumnsOfABlock;
    const Cut parts = cut(tiles, length, kRowsOfABlock * 32, packed && Load::kPacks);
    reduce_columns_kernel<T, Way, inputs><<<grid_of(tiles * parts.chunks), kThreads, 0, on>>>(
        kept, reduced, length, parts, load, store, partial);
    chunks = parts.chunks;
  }
  if (chunks > 1) {
    const dim3 team = teams_of(chunks <= kThreads ? kWarp : kThreads);
    combine_kernel<T, Way, inputs>
        <<<grid_of((outer + team.y - 1) / team.y), team, 0, on>>>(kept, chunks, store, partial);
  }
  return launched();
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_GPU_REDUCE_CUH_

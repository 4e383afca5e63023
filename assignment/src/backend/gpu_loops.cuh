/*!
 * \file gpu_loops.cuh
 * \brief The GPU back end's loops over elements: where operands lie, packs of elements, tiles.
 *
 * Kernels whose operands lie side by side read and write 16 bytes at a time, and each thread asks
 * for all that it needs before it computes: that is what keeps the memory busy.
 */
#ifndef DLSYS_BACKEND_GPU_LOOPS_CUH_
#define DLSYS_BACKEND_GPU_LOOPS_CUH_

#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "launch.cuh"
#include "numbers.h"

namespace dlsys {
namespace backend {

const int kThreads = 256;
const int kWarp = 32;
/*! \brief Most axes that nested loops have once they are collapsed. */
const int kMostAxes = 8;
/*! \brief Blocks that keep every multiprocessor busy; threads go on in steps of the grid. */
const int64_t kMostBlocks = 4096;
/*! \brief Blocks of a launch where each has work of its own. */
const int64_t kMostOfAGrid = 1 << 30;

inline int launched() { return cudaGetLastError() == cudaSuccess ? 0 : -1; }

inline int blocks_for(int64_t items) {
  const int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<int>(std::max<int64_t>(1, std::min(blocks, kMostBlocks)));
}

inline int grid_of(int64_t blocks) { return static_cast<int>(std::min(blocks, kMostOfAGrid)); }

/*! \brief Elements that a thread reads and writes at once. */
const int kPack = 4;

/*! \brief So many of an operand; four floats are the 16 bytes that one instruction takes. */
template <class T>
struct alignas(sizeof(T) * kPack < 16 ? sizeof(T) * kPack : 16) Pack {
  T values[kPack];
};

/*!
 * \brief Division of numbers below 2^31 by one that is known before: a product and a shift.
 *
 * For 2^(L - 1) < d <= 2^L and m = floor(2^(31 + L) / d) + 1, n m / 2^(31 + L) is above n / d by
 * less than 1 / d, so that its floor is the same.
 */
struct Divisor {
  uint32_t factor, shift;

  static Divisor of(int64_t divisor) {
    uint32_t shift = 31;
    while ((int64_t(1) << (shift - 31)) < divisor) ++shift;
    return {static_cast<uint32_t>((uint64_t(1) << shift) / static_cast<uint64_t>(divisor) + 1),
            shift};
  }
  DLSYS_INLINE uint32_t quotient(uint32_t number) const {
    return static_cast<uint32_t>(static_cast<uint64_t>(number) * factor >> shift);
  }
};

/*! \brief Nested loops, and how each operand lies along them: what loops.h has as Axes. */
template <int operands>
struct Loops {
  int rank;
  bool is_small;  // fewer than 2^31 iterations
  Divisor divisors[kMostAxes];
  int64_t extents[kMostAxes];
  int64_t strides[operands][kMostAxes];

  /*! \brief Reads them at n, which then points behind them. */
  explicit Loops(const int64_t*& n) : rank(static_cast<int>(n[0])) {
    ++n;
    for (int axis = 0; axis < rank; ++axis) extents[axis] = *n++;
    for (int i = 0; i < operands; ++i)
      for (int axis = 0; axis < rank; ++axis) strides[i][axis] = *n++;
    is_small = size() > 0 && size() < (int64_t(1) << 31);
    for (int axis = 0; is_small && axis < rank; ++axis) divisors[axis] = Divisor::of(extents[axis]);
  }

  DLSYS_INLINE int64_t size() const {
    int64_t product = 1;
    for (int axis = 0; axis < rank; ++axis) product *= extents[axis];
    return product;
  }

  DLSYS_INLINE int64_t inner() const { return extents[rank - 1]; }
  DLSYS_INLINE int64_t step(int operand) const { return strides[operand][rank - 1]; }

  /*! \brief Adds to `at` where iteration `index` of the first `axes` loops finds each operand. */
  DLSYS_INLINE void add_offsets(int64_t index, int64_t* at, int axes) const {
    for (int axis = axes - 1; axis > 0; --axis) {
      const int64_t rest =
          is_small ? divisors[axis].quotient(static_cast<uint32_t>(index)) : index / extents[axis];
      const int64_t digit = index - rest * extents[axis];
      for (int i = 0; i < operands; ++i) at[i] += digit * strides[i][axis];
      index = rest;
    }
    if (axes > 0)
      for (int i = 0; i < operands; ++i) at[i] += index * strides[i][0];
  }
  DLSYS_INLINE void add_offsets(int64_t index, int64_t* at) const { add_offsets(index, at, rank); }

  /*! \brief Whether packs of operand i start where a Pack may, in each iteration of `axes`. */
  bool keeps_packs(int i, int axes) const {
    for (int axis = 0; axis < axes; ++axis)
      if (extents[axis] > 1 && strides[i][axis] % kPack != 0) return false;
    return true;
  }
};

/*! \brief Whether an operand starts where a Pack may. */
inline bool is_aligned(const char* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

/*! \brief Whether each row, the innermost loop, starts where a Pack may, of all operands that move.
 */
template <int operands>
bool start_packs(const Loops<operands>& loops, char* const* data) {
  for (int i = 0; i < operands; ++i)
    if (loops.step(i) != 0 && !(is_aligned(data[i]) && loops.keeps_packs(i, loops.rank - 1)))
      return false;
  return true;
}

/*! \brief Extents of the innermost loop from which a block has a part of one row, a tile. */
const int64_t kWorthATile = kThreads;

/*!
 * \brief Whether operands go pack by pack: rows of whole packs that are too short for tiles.
 * \param length of a tile, most of whose threads would have nothing to do.
 */
template <int operands>
bool go_by_packs(const Loops<operands>& loops, char* const* data, int64_t length) {
  return loops.rank > 1 && loops.inner() < length && loops.inner() % kPack == 0 &&
         start_packs(loops, data);
}

/*! \brief How rows, the innermost loops, are cut in tiles; whether they are read in packs. */
struct Tiles {
  int64_t in_row, count;
  bool packed;
};

/*! \brief Whether a block has whole rows, of a pack a thread, of two loops: what all rows share is
 * read once a thread, and nothing is divided. */
template <int operands>
bool go_by_lines(const Loops<operands>& loops, char* const* data) {
  return loops.rank == 2 && loops.inner() % kPack == 0 && loops.inner() <= kThreads * kPack &&
         kThreads % (loops.inner() / kPack) == 0 && start_packs(loops, data);
}

/*! \brief Blocks that go by lines, of which threads read `many` at once. */
template <int operands>
int blocks_of_lines(const Loops<operands>& loops, int many) {
  const int64_t packs = loops.size() / kPack;
  return static_cast<int>(std::min<int64_t>((packs / many + kThreads - 1) / kThreads + 1, 1056));
}

/*!
 * \brief Tiles of at most `length` elements; none (count 0) where the rows are too short.
 * \param loops along whose last axis each operand has the step 0 or 1, the first one 1.
 */
template <int operands>
Tiles tiles_of(const Loops<operands>& loops, char* const* data, int64_t length) {
  if (loops.rank > 1 && loops.inner() < kWorthATile) return {0, 0, false};
  const int64_t in_row = (loops.inner() + length - 1) / length;
  return {in_row, loops.size() / loops.inner() * in_row, start_packs(loops, data)};
}

/*! \brief What a block has of a row: `count` elements from `begin`, where each operand lies. */
template <int operands>
struct Tile {
  int64_t at[operands] = {};
  int count;

  __device__ Tile(const Loops<operands>& loops, const Tiles& tiles, int64_t tile, int length) {
    const int64_t row = loops.rank == 1 ? 0 : tile / tiles.in_row;
    const int64_t begin = (tile - row * tiles.in_row) * length, rest = loops.inner() - begin;
    count = rest < length ? static_cast<int>(rest) : length;
    loops.add_offsets(row, at, loops.rank - 1);
    for (int i = 0; i < operands; ++i) at[i] += begin * loops.step(i);
  }
};

/*! \brief The value that the thread has whose lane differs in `bits`; of any type of whole words.
 */
template <class T>
__device__ T of_partner(T value, int bits, std::false_type) {
  static_assert(sizeof(T) % sizeof(unsigned) == 0, "a warp exchanges whole words");
  unsigned words[sizeof(T) / sizeof(unsigned)];
  memcpy(words, &value, sizeof(T));
  for (int i = 0; i < static_cast<int>(sizeof(T) / sizeof(unsigned)); ++i)
    words[i] = __shfl_xor_sync(0xffffffff, words[i], bits);
  memcpy(&value, words, sizeof(T));
  return value;
}
template <class T>
__device__ T of_partner(T value, int bits, std::true_type) {
  return static_cast<T>(__shfl_xor_sync(0xffffffff, value, bits));
}

/*! \brief The Way of one value of each thread of a warp; all threads get it. */
template <class Way, class T>
__device__ T of_warp(T value) {
  for (int bits = kWarp / 2; bits > 0; bits /= 2)
    value = Way::both(value, of_partner(value, bits, std::is_arithmetic<T>()));
  return value;
}

/*!
 * \brief The same of a team: the threads of a block that have one threadIdx.y.
 *
 * A team is one thread or one warp, of which a block may have several, or the whole block.
 */
template <class Way, class T>
__device__ T of_team(T value) {
  if (blockDim.x == 1) return value;
  value = of_warp<Way>(value);
  if (blockDim.x > kWarp) {
    __shared__ T partial[kWarp];
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    __syncthreads();
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    const int warps = static_cast<int>(blockDim.x) / kWarp;
    value = of_warp<Way>(lane < warps ? partial[lane] : Way::start());
  }
  return value;
}

/*! \brief Blocks of teams: one large team, or as many warps as make up a block. */
inline dim3 teams_of(int64_t threads) {
  const int64_t team = (std::max<int64_t>(threads, 1) + kWarp - 1) / kWarp * kWarp;
  return dim3(static_cast<unsigned>(team), team > kWarp ? 1 : kThreads / kWarp);
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_GPU_LOOPS_CUH_

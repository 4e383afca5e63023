/*!
 * \file warp.h
 * \brief Barriers, and what the 32 threads of a warp exchange.
 */
#ifndef EMULATOR_WARP_H_
#define EMULATOR_WARP_H_

#include <cstdint>
#include <cstring>

#include "emulator/language.h"

// Else clang makes one call of two barriers that stand in two branches.
#ifdef __clang__
#define EMULATOR_NOMERGE __attribute__((nomerge))
#else
#define EMULATOR_NOMERGE
#endif

extern "C" {
/*! \brief Waits until every thread of the block is here or has returned. */
EMULATOR_NOMERGE void __syncthreads();
/*! \brief As __syncthreads; how many threads passed something other than 0. */
EMULATOR_NOMERGE int __syncthreads_count(int predicate);
/*! \brief As __syncthreads; whether all threads did. */
EMULATOR_NOMERGE int __syncthreads_and(int predicate);
/*! \brief As __syncthreads; whether one thread did. */
EMULATOR_NOMERGE int __syncthreads_or(int predicate);

/*! \brief For the checked build: the thread leaves the kernel, early or by its last brace. */
EMULATOR_NOMERGE void emulator_kernel_returns();
EMULATOR_NOMERGE void emulator_kernel_ends();

/*! \brief A turn of a loop that may wait for another thread: after some, others run. */
EMULATOR_NOMERGE void emulator_turn();
/*! \brief For the checked build: a loop that only waits begins, and has ended. */
void emulator_wait_begins();
void emulator_wait_ends();

/*! \brief Waits until every lane of the mask is here or has returned. */
void emulator_syncwarp(unsigned mask);
/*! \brief As __syncwarp; bit i of the result says whether lane i passed something but 0. */
unsigned emulator_ballot(unsigned mask, int predicate);
/*! \brief As __syncwarp; the value that lane `source` passed, or the own one without it. */
uint64_t emulator_exchange(unsigned mask, uint64_t value, int source);
/*! \brief As __syncwarp; puts what lane i passed into values[i]; bit i says whether it did. */
unsigned emulator_gather(unsigned mask, uint64_t value, uint64_t* values);
/*! \brief The number of the thread in its warp. */
int emulator_lane();
/*! \brief The lanes of the warp that are here, at this place in the program, together. */
unsigned emulator_active(int place);
}

namespace emulator {

/*! \brief Lives as long as a loop that only waits, see cuda_source/waiting_loops.py. */
struct Waiting {
#ifdef EMULATOR_CHECKED
  Waiting() { emulator_wait_begins(); }
  ~Waiting() { emulator_wait_ends(); }
#else
  Waiting() {}
#endif
};

}  // namespace emulator

// A compiler may make one of the calls in two branches, so each says which it is.
#define __activemask() emulator_active(__COUNTER__)

inline void __syncwarp(unsigned mask = 0xffffffff) { emulator_syncwarp(mask); }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return emulator_ballot(mask, predicate);
}
inline int __any_sync(unsigned mask, int predicate) {
  return emulator_ballot(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return emulator_ballot(mask, !predicate) == 0;
}

namespace emulator {

template <typename T>
uint64_t bits_of(T value) {
  static_assert(sizeof(T) <= 8, "lanes exchange values of 8 bytes at most");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <typename T>
T exchange(unsigned mask, T value, int source) {
  static_assert((sizeof(T) & (sizeof(T) - 1)) == 0 && sizeof(T) <= 8,
                "shuffles exchange values of at most 8 bytes");
  uint64_t bits = emulator_exchange(mask, bits_of(value), source);
  std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  return value;
}

}  // namespace emulator

// A warp is cut into segments of `width` lanes, a power of 2. A lane whose source lies outside
// of its segment keeps its value.

/*! \brief The value of lane `source` of the segment. */
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  int first = emulator_lane() & ~(width - 1);
  return emulator::exchange(mask, value, first + (source & (width - 1)));
}

/*! \brief The value of the lane `delta` below. */
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  int lane = emulator_lane(), source = lane - static_cast<int>(delta);
  return emulator::exchange(mask, value, source < (lane & ~(width - 1)) ? lane : source);
}

/*! \brief The value of the lane `delta` above. */
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  int lane = emulator_lane(), source = lane + static_cast<int>(delta);
  return emulator::exchange(mask, value, source > (lane | (width - 1)) ? lane : source);
}

/*! \brief The value of the lane whose number differs in the bits of `bits`. */
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize) {
  int lane = emulator_lane(), source = lane ^ bits;
  return emulator::exchange(mask, value, source > (lane | (width - 1)) ? lane : source);
}

// Values of all lanes, compared or brought together. As on a GPU, of 32-bit integers only where
// they are added or the like.

/*! \brief The lanes whose values have the same bits. */
template <typename T>
unsigned __match_any_sync(unsigned mask, T value) {
  uint64_t values[warpSize], bits = emulator::bits_of(value);
  unsigned here = emulator_gather(mask, bits, values), same = 0;
  for (int lane = 0; lane < warpSize; ++lane)
    if ((here >> lane & 1) && values[lane] == bits) same |= 1u << lane;
  return same;
}

/*! \brief The mask if all values have the same bits, else 0. */
template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* all_the_same) {
  uint64_t values[warpSize], bits = emulator::bits_of(value);
  unsigned here = emulator_gather(mask, bits, values);
  *all_the_same = 1;
  for (int lane = 0; lane < warpSize; ++lane)
    if ((here >> lane & 1) && values[lane] != bits) *all_the_same = 0;
  return *all_the_same ? mask : 0;
}

namespace emulator {

template <typename T, typename Op>
T reduce_lanes(unsigned mask, T value, Op op) {
  uint64_t values[warpSize];
  unsigned here = emulator_gather(mask, static_cast<unsigned>(value), values);
  for (int lane = 0; lane < warpSize; ++lane)
    if ((here >> lane & 1) && lane != emulator_lane())
      value = op(value, static_cast<T>(values[lane]));
  return value;
}

}  // namespace emulator

#define EMULATOR_REDUCE(name, T, expression)                                              \
  inline T name(unsigned mask, T value) {                                                 \
    return emulator::reduce_lanes(mask, value, [](T a, T b) -> T { return expression; }); \
  }

EMULATOR_REDUCE(__reduce_add_sync, unsigned, a + b)
EMULATOR_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
EMULATOR_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
EMULATOR_REDUCE(__reduce_and_sync, unsigned, a& b)
EMULATOR_REDUCE(__reduce_or_sync, unsigned, a | b)
EMULATOR_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
EMULATOR_REDUCE(__reduce_min_sync, int, a < b ? a : b)
EMULATOR_REDUCE(__reduce_max_sync, int, a > b ? a : b)
// Wraps around, which a signed sum may not.
inline int __reduce_add_sync(unsigned mask, int value) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value)));
}

#undef EMULATOR_REDUCE

#endif  // EMULATOR_WARP_H_

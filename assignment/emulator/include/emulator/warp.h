/*!
 * \file warp.h
 * \brief Barriers, and what the 32 threads of a warp exchange.
 */
#ifndef EMULATOR_WARP_H_
#define EMULATOR_WARP_H_

#include <cstdint>
#include <cstring>

#include "emulator/language.h"

extern "C" {
/*! \brief Waits until every thread of the block is here or has returned. */
void __syncthreads();
/*! \brief As __syncthreads; how many threads passed something other than 0. */
int __syncthreads_count(int predicate);
/*! \brief As __syncthreads; whether all threads did. */
int __syncthreads_and(int predicate);
/*! \brief As __syncthreads; whether one thread did. */
int __syncthreads_or(int predicate);

/*! \brief Waits until every lane of the mask is here or has returned. */
void emulator_syncwarp(unsigned mask);
/*! \brief As __syncwarp; bit i of the result says whether lane i passed something but 0. */
unsigned emulator_ballot(unsigned mask, int predicate);
/*! \brief As __syncwarp; the value that lane `source` passed, or the own one without it. */
uint64_t emulator_exchange(unsigned mask, uint64_t value, int source);
/*! \brief The number of the thread in its warp. */
int emulator_lane();
/*! \brief The lanes of the warp that are here together. */
unsigned __activemask();
}

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
T exchange(unsigned mask, T value, int source) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles exchange values of 4 or 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = emulator_exchange(mask, bits, source);
  std::memcpy(&value, &bits, sizeof value);
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

#endif  // EMULATOR_WARP_H_

/*!
 * \file inline_math.h
 * \brief Functions of mathematics without branches, which compilers take for several threads at
 * once.
 *
 * They have the names of the C library's, whose callers get them: kernels, and whatever else is
 * compiled with them. They give the same bits in each build.
 */
#ifndef EMULATOR_INLINE_MATH_H_
#define EMULATOR_INLINE_MATH_H_

#pragma GCC system_header

#include <cstdint>

#include "emulator/bits.h"
#include "emulator/cmath.h"
#include "emulator/type_traits.h"

#define EMULATOR_IN_PLACE inline __attribute__((__always_inline__))

namespace emulator {

/*!
 * \brief The larger one of two numbers, or the smaller one.
 *
 * As on a GPU, the one that is a number if the other is NaN. Two equal ones of unlike bits are 0
 * and -0, and 0 is more.
 */
template <bool most, typename T>
EMULATOR_IN_PLACE T extreme(T a, T b) {
  typedef conditional_t<sizeof(T) == sizeof(float), uint32_t, uint64_t> Bits;
  const Bits x = bit_cast<Bits>(a), y = bit_cast<Bits>(b);
  const T of_equals = bit_cast<T>(most ? x & y : x | y);
  const T other = (most ? a > b : a < b) || b != b ? a : b;
  return a == b ? of_equals : other;
}

/*!
 * \brief e to the power of x, the nearest float but for 1 in some million, next to it.
 *
 * In double: x is a whole number of ln 2, by which the exponent grows, and what is left, of which
 * Taylor's series is the rest. Subnormal numbers, 0 and infinity come of the last conversion.
 */
EMULATOR_IN_PLACE float exponential(float x) {
  // Beyond these the result is 0 or infinity; NaN stays.
  const float above = x < -110.0f ? -110.0f : x, within = above > 100.0f ? 100.0f : above;
  const double at = static_cast<double>(within);
  const double to_whole = 6755399441055744.0;  // 1.5 * 2^52: sums with it have no fraction
  const double moved = at * 1.4426950408889634 + to_whole;
  const double r = at - (moved - to_whole) * 0.6931471805599453;
  double sum = 1.0 / 362880;
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 1.0 / 2;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  // The last bits of the moved number are the whole one's; those of 1.0 are the exponent 0.
  const uint64_t bits = (bit_cast<uint64_t>(moved) << 52) + (uint64_t{1023} << 52);
  return static_cast<float>(sum * bit_cast<double>(bits));
}

}  // namespace emulator

// As <string.h> of glibc has its checked functions: calls are put in place, addresses are those of
// the library. -ffast-math would take the steps apart.
#if defined(__GLIBC__) && !defined(__FAST_MATH__)
#define EMULATOR_FOR_CALLS extern EMULATOR_IN_PLACE __attribute__((__gnu_inline__))
extern "C" {
EMULATOR_FOR_CALLS float expf(float x) noexcept { return emulator::exponential(x); }
EMULATOR_FOR_CALLS float fmaxf(float a, float b) noexcept { return emulator::extreme<true>(a, b); }
EMULATOR_FOR_CALLS float fminf(float a, float b) noexcept { return emulator::extreme<false>(a, b); }
EMULATOR_FOR_CALLS double fmax(double a, double b) noexcept {
  return emulator::extreme<true>(a, b);
}
EMULATOR_FOR_CALLS double fmin(double a, double b) noexcept {
  return emulator::extreme<false>(a, b);
}
}
#undef EMULATOR_FOR_CALLS
#endif
#undef EMULATOR_IN_PLACE

#endif  // EMULATOR_INLINE_MATH_H_

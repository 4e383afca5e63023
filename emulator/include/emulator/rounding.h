/*!
 * \file rounding.h
 * \brief Arithmetic that rounds towards 0, up or down: __fadd_rz, __dmul_ru and so on.
 */
#ifndef EMULATOR_ROUNDING_H_
#define EMULATOR_ROUNDING_H_

#pragma GCC system_header

#include <fenv.h>
#include <math.h>

namespace emulator {

/*! \brief What f makes of numbers while the CPU rounds in another way. */
template <int direction, typename T, typename F>
inline T rounded_to(F f, T a, T b = 0, T c = 0) {
  const int before = fegetround();
  fesetround(direction);
  // The compiler, which knows of one way to round alone, does nothing before or behind these.
  asm volatile("" : "+m"(a), "+m"(b), "+m"(c));
  T result = f(a, b, c);
  asm volatile("" : "+m"(result));
  fesetround(before);
  return result;
}

}  // namespace emulator

#define EMULATOR_ONE(name, T, mode, expression)                                 \
  inline T name(T x) {                                                          \
    return emulator::rounded_to<mode>([](T a, T, T) { return expression; }, x); \
  }
#define EMULATOR_TWO(name, T, mode, expression)                                      \
  inline T name(T x, T y) {                                                          \
    return emulator::rounded_to<mode>([](T a, T b, T) { return expression; }, x, y); \
  }
#define EMULATOR_THREE(name, T, mode, expression)                                         \
  inline T name(T x, T y, T z) {                                                          \
    return emulator::rounded_to<mode>([](T a, T b, T c) { return expression; }, x, y, z); \
  }
#define EMULATOR_OF_TYPE(letter, T, fused, direction, mode)         \
  EMULATOR_TWO(__##letter##add_##direction, T, mode, a + b)         \
  EMULATOR_TWO(__##letter##sub_##direction, T, mode, a - b)         \
  EMULATOR_TWO(__##letter##mul_##direction, T, mode, a* b)          \
  EMULATOR_TWO(__##letter##div_##direction, T, mode, a / b)         \
  EMULATOR_ONE(__##letter##rcp_##direction, T, mode, 1 / a)         \
  EMULATOR_ONE(__##letter##sqrt_##direction, T, mode, std::sqrt(a)) \
  EMULATOR_THREE(fused##_##direction, T, mode, std::fma(a, b, c))
#define EMULATOR_DIRECTION(direction, mode)           \
  EMULATOR_OF_TYPE(f, float, __fmaf, direction, mode) \
  EMULATOR_OF_TYPE(d, double, __fma, direction, mode)
EMULATOR_DIRECTION(rz, FE_TOWARDZERO)
EMULATOR_DIRECTION(ru, FE_UPWARD)
EMULATOR_DIRECTION(rd, FE_DOWNWARD)
#undef EMULATOR_DIRECTION
#undef EMULATOR_OF_TYPE
#undef EMULATOR_THREE
#undef EMULATOR_TWO
#undef EMULATOR_ONE

#endif  // EMULATOR_ROUNDING_H_

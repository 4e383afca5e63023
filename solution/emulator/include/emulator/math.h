/*!
 * \file math.h
 * \brief CUDA's mathematical functions, in the global namespace.
 *
 * exp, log, sqrt and their like, with overloads for float and double, are those of <math.h>,
 * which are the ones of namespace std too; so `using namespace std` makes nothing ambiguous.
 * The fast functions of the GPU (__expf) are the exact ones here.
 */
#ifndef EMULATOR_MATH_H_
#define EMULATOR_MATH_H_

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include <cfloat>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace emulator {

template <typename A, typename B>
using Common = std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value,
                                std::common_type_t<A, B>>;

template <typename To, typename From>
To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "the sizes must be equal");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace emulator

// Of any two numbers. As on a GPU, the one that is a number if the other is NaN.
template <typename A, typename B>
inline emulator::Common<A, B> max(A a, B b) {
  emulator::Common<A, B> x = a, y = b;
  return x > y || y != y ? x : y;
}
template <typename A, typename B>
inline emulator::Common<A, B> min(A a, B b) {
  emulator::Common<A, B> x = a, y = b;
  return x < y || y != y ? x : y;
}

inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rcbrtf(float x) { return 1 / cbrtf(x); }
inline float fdividef(float a, float b) { return a / b; }
inline float sinpif(float x) { return sinf(x * 3.14159265358979f); }
inline float cospif(float x) { return cosf(x * 3.14159265358979f); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

// Macros, since some C libraries declare functions of these names.
#define __expf(x) expf(x)
#define __exp10f(x) powf(10, x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)

// Arithmetic, rounded to nearest.
inline float __fdividef(float a, float b) { return a / b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1 / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frsqrt_rn(float a) { return 1 / sqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline int __float_as_int(float x) { return emulator::bit_cast<int>(x); }
inline float __int_as_float(int x) { return emulator::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return emulator::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emulator::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return emulator::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return emulator::bit_cast<double>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __mul24(int a, int b) { return a * b; }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}

/*! \brief A load through the read-only cache. */
template <typename T>
inline T __ldg(const T* p) {
  return *p;
}

/*! \brief A clock that runs with the multiprocessor; here it counts nanoseconds. */
inline long long clock64() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

#endif  // EMULATOR_MATH_H_

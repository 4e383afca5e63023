/*!
 * \file math.h
 * \brief CUDA's mathematical functions, in the global namespace.
 *
 * exp, log, sqrt and their like, with overloads for float and double, are those of <math.h>,
 * which are the ones of namespace std too; so `using namespace std` makes nothing ambiguous.
 * expf, fmax and fmin are in inline_math.h. The fast functions of the GPU (__expf) are exact ones.
 */
#ifndef EMULATOR_MATH_H_
#define EMULATOR_MATH_H_

// It uses what C++17 has, which compilers take in older standards too, with a warning.
#pragma GCC system_header

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include <cfloat>
#include <climits>
#include <cstdint>
#include <cstring>
#include <utility>

#include "emulator/bits.h"
#include "emulator/cmath.h"
#include "emulator/type_traits.h"

// After <cmath>, which it would bring whole.
#include <math.h>

#include "emulator/inline_math.h"
#include "emulator/rounding.h"

namespace emulator {

// A short and an enumerator become an int, as an argument of CUDA's functions does.
template <typename T>
using Promoted = enable_if_t<std::is_arithmetic<T>::value ||
                                 (std::is_enum<T>::value && std::is_convertible<T, int>::value),
                             decltype(+std::declval<T>())>;
template <typename A, typename B>
using Common = common_type_t<Promoted<A>, Promoted<B>>;

template <bool most, typename T>
inline T extreme_of(T x, T y) {
  if constexpr (std::is_same<T, float>::value || std::is_same<T, double>::value)
    return extreme<most>(x, y);
  else
    return (most ? x > y : x < y) ? x : y;
}

}  // namespace emulator

// Of any two numbers.
template <typename A, typename B>
inline emulator::Common<A, B> max(A a, B b) {
  return emulator::extreme_of<true, emulator::Common<A, B>>(a, b);
}
template <typename A, typename B>
inline emulator::Common<A, B> min(A a, B b) {
  return emulator::extreme_of<false, emulator::Common<A, B>>(a, b);
}

inline unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
inline unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
inline long long llmax(long long a, long long b) { return a > b ? a : b; }
inline long long llmin(long long a, long long b) { return a < b ? a : b; }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) {
  return a > b ? a : b;
}
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) {
  return a < b ? a : b;
}

inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rcbrtf(float x) { return 1 / cbrtf(x); }
inline float fdividef(float a, float b) { return a / b; }
inline double rcbrt(double x) { return 1 / cbrt(x); }

// Of pi x: exact where x is a multiple of 1/2, since the turns are taken off first.
inline double sinpi(double x) {
  const double pi = 3.141592653589793, r = fmod(x, 2.0), size = fabs(r);
  if (size == 0 || size == 1) return copysign(0.0, x);
  const double turned = size <= 0.5 ? size : (size < 1.5 ? 1 - size : size - 2);
  return copysign(1.0, x) * sin(pi * turned);
}
inline double cospi(double x) {
  const double size = fabs(fmod(x, 2.0));
  return size == 0.5 || size == 1.5 ? 0 : sinpi(size <= 1.5 ? 0.5 - size : size - 1.5);
}
inline float sinpif(float x) { return static_cast<float>(sinpi(x)); }
inline float cospif(float x) { return static_cast<float>(cospi(x)); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }

#ifndef __GLIBC__  // which has them
inline void sincos(double x, double* s, double* c) { *s = sin(x), *c = cos(x); }
inline void sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline double exp10(double x) { return pow(10.0, x); }
inline float exp10f(float x) { return static_cast<float>(pow(10.0, x)); }
#endif

// The normal distribution: the probability of less than x, and where it is p.
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.7071067811865476); }
inline float normcdff(float x) { return static_cast<float>(normcdf(x)); }
double normcdfinv(double p);
inline float normcdfinvf(float p) { return static_cast<float>(normcdfinv(p)); }
double erfinv(double x);
inline float erfinvf(float x) { return static_cast<float>(erfinv(x)); }
inline double erfcinv(double x) { return -normcdfinv(x / 2) * 0.7071067811865476; }
inline float erfcinvf(float x) { return static_cast<float>(erfcinv(x)); }

// Lengths of vectors. Those of floats are worked out in double, where nothing overflows.
inline float norm3df(float a, float b, float c) {
  const double x = a, y = b, z = c;
  return static_cast<float>(sqrt(x * x + y * y + z * z));
}
inline float norm4df(float a, float b, float c, float d) {
  const double x = a, y = b, z = c, w = d;
  return static_cast<float>(sqrt(x * x + y * y + z * z + w * w));
}
inline float rhypotf(float a, float b) { return 1 / hypotf(a, b); }
inline float rnorm3df(float a, float b, float c) { return 1 / norm3df(a, b, c); }
inline float rnorm4df(float a, float b, float c, float d) { return 1 / norm4df(a, b, c, d); }
inline double norm4d(double a, double b, double c, double d) {
  return hypot(hypot(a, b), hypot(c, d));
}
inline double norm3d(double a, double b, double c) { return hypot(hypot(a, b), c); }
inline double rhypot(double a, double b) { return 1 / hypot(a, b); }
inline double rnorm3d(double a, double b, double c) { return 1 / norm3d(a, b, c); }
inline double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

// Macros, since some C libraries declare functions of these names.
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __sincosf(x, s, c) sincosf(x, s, c)

namespace emulator {

// Where the CPU has an instruction for a product and a sum, compilers use it, which then rounds
// once, as nvcc does. A number that went through here has been rounded.
template <typename T>
inline T rounded(T x) {
#if defined(__aarch64__)
  asm("" : "+w"(x));
#elif defined(__FMA__)
  asm("" : "+x"(x));
#endif
  return x;
}

}  // namespace emulator

// Arithmetic, rounded to nearest, never two operations at once.
inline float __fdividef(float a, float b) { return a / b; }
inline float __fadd_rn(float a, float b) { return emulator::rounded(a) + emulator::rounded(b); }
inline float __fsub_rn(float a, float b) { return emulator::rounded(a) - emulator::rounded(b); }
inline float __fmul_rn(float a, float b) { return emulator::rounded(a * b); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1 / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frsqrt_rn(float a) { return 1 / sqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return emulator::rounded(a) + emulator::rounded(b); }
inline double __dsub_rn(double a, double b) { return emulator::rounded(a) - emulator::rounded(b); }
inline double __dmul_rn(double a, double b) { return emulator::rounded(a * b); }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double a) { return 1 / a; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

// Loads and stores with advice for the caches, of which there are none.
#define EMULATOR_LOAD(name)   \
  template <typename T>       \
  inline T name(const T* p) { \
    return *p;                \
  }
#define EMULATOR_STORE(name)        \
  template <typename T>             \
  inline void name(T* p, T value) { \
    *p = value;                     \
  }
EMULATOR_LOAD(__ldg)
EMULATOR_LOAD(__ldca)
EMULATOR_LOAD(__ldcg)
EMULATOR_LOAD(__ldcs)
EMULATOR_LOAD(__ldlu)
EMULATOR_LOAD(__ldcv)
EMULATOR_STORE(__stwb)
EMULATOR_STORE(__stcg)
EMULATOR_STORE(__stcs)
EMULATOR_STORE(__stwt)
#undef EMULATOR_LOAD
#undef EMULATOR_STORE

/*! \brief A clock that runs with the multiprocessor; here it counts nanoseconds. */
inline long long clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/*! \brief Lets others go on. A GPU may sleep shorter than it is told, too. */
inline void __nanosleep(unsigned) { sched_yield(); }

extern "C" {
/*! \brief Ends the launch with an error. */
[[noreturn]] void __trap();
/*! \brief A breakpoint: without a debugger it ends the launch with an error. */
void __brkpt();
}

#endif  // EMULATOR_MATH_H_

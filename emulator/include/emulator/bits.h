/*!
 * \file bits.h
 * \brief Conversions between numbers, and the integers' functions that look at bits.
 */
#ifndef EMULATOR_BITS_H_
#define EMULATOR_BITS_H_

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "emulator/cmath.h"
#include "emulator/simd.h"

namespace emulator {

template <typename To, typename From>
inline __attribute__((__always_inline__)) To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "the sizes must be equal");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);  // no call, where -fno-builtin-memcpy is given
  return to;
}

/*! \brief A whole number as an integer; what none can hold becomes the nearest one. */
template <typename T>
T to_integer(double x, bool of_double = false) {
  typedef std::numeric_limits<T> Limits;
  // As PTX has it: 0, or the topmost bit where 64 bits take part.
  if (x != x) return sizeof(T) == 8 || of_double ? static_cast<T>(1ull << (sizeof(T) * 8 - 1)) : 0;
  if (x <= static_cast<double>(Limits::min())) return Limits::min();
  if (x >= std::ldexp(1.0, Limits::digits)) return Limits::max();
  return static_cast<T>(x);
}

/*! \brief A number that is exact, or differs from the nearest To as `error` says, rounded. */
template <typename To, typename From>
To round_toward(From x, double direction) {
  To to = static_cast<To>(x);
  long double left = static_cast<long double>(x) - static_cast<long double>(to);
  if (left * direction > 0) to = std::nextafter(to, static_cast<To>(direction));
  return to;
}

}  // namespace emulator

// Floating point numbers to integers: rn to the nearest, rz towards 0, ru up, rd down.
#define EMULATOR_TO_INTEGER(From, from, To, to)                            \
  inline To __##from##2##to##_rn(From x) {                                 \
    return emulator::to_integer<To>(std::nearbyint(x), sizeof(From) == 8); \
  }                                                                        \
  inline To __##from##2##to##_rz(From x) {                                 \
    return emulator::to_integer<To>(std::trunc(x), sizeof(From) == 8);     \
  }                                                                        \
  inline To __##from##2##to##_ru(From x) {                                 \
    return emulator::to_integer<To>(std::ceil(x), sizeof(From) == 8);      \
  }                                                                        \
  inline To __##from##2##to##_rd(From x) {                                 \
    return emulator::to_integer<To>(std::floor(x), sizeof(From) == 8);     \
  }

EMULATOR_TO_INTEGER(float, float, int, int)
EMULATOR_TO_INTEGER(float, float, unsigned, uint)
EMULATOR_TO_INTEGER(float, float, long long, ll)
EMULATOR_TO_INTEGER(float, float, unsigned long long, ull)
EMULATOR_TO_INTEGER(double, double, int, int)
EMULATOR_TO_INTEGER(double, double, unsigned, uint)
EMULATOR_TO_INTEGER(double, double, long long, ll)
EMULATOR_TO_INTEGER(double, double, unsigned long long, ull)
#undef EMULATOR_TO_INTEGER

// And those that may lose digits in the other direction.
#define EMULATOR_TO_FLOAT(From, from, To, to)                                                 \
  inline To __##from##2##to##_rn(From x) { return static_cast<To>(x); }                       \
  inline To __##from##2##to##_ru(From x) { return emulator::round_toward<To>(x, INFINITY); }  \
  inline To __##from##2##to##_rd(From x) { return emulator::round_toward<To>(x, -INFINITY); } \
  inline To __##from##2##to##_rz(From x) {                                                    \
    return emulator::round_toward<To>(x, x < 0 ? INFINITY : -INFINITY);                       \
  }

EMULATOR_TO_FLOAT(int, int, float, float)
EMULATOR_TO_FLOAT(unsigned, uint, float, float)
EMULATOR_TO_FLOAT(long long, ll, float, float)
EMULATOR_TO_FLOAT(unsigned long long, ull, float, float)
EMULATOR_TO_FLOAT(long long, ll, double, double)
EMULATOR_TO_FLOAT(unsigned long long, ull, double, double)
EMULATOR_TO_FLOAT(double, double, float, float)
#undef EMULATOR_TO_FLOAT
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }

inline int __float_as_int(float x) { return emulator::bit_cast<int>(x); }
inline float __int_as_float(int x) { return emulator::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return emulator::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emulator::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return emulator::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return emulator::bit_cast<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(
      static_cast<uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low)));
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }

/*! \brief The bits in reverse order. */
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1) << (31 - i);
  return result;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}

/*! \brief Four of the eight bytes y:x; a digit of `selector` each, 8 means its sign, spread. */
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned digit = selector >> (4 * i) & 7;  // the fourth bit counts in PTX alone
    result |= (bytes >> (8 * digit) & 0xff) << (8 * i);
  }
  return result;
}

// The bits of high:low, shifted; by shift % 32, or by 32 at most (c).
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift < 32 ? shift : 32) >> 32);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return __funnelshift_lc(low, high, shift & 31);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift < 32 ? shift : 32));
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return __funnelshift_rc(low, high, shift & 31);
}

// Products: of the low 24 bits, and the upper halves of whole ones.
inline int __mul24(int a, int b) {
  auto low = [](int x) { return static_cast<int>(static_cast<unsigned>(x) << 8) >> 8; };
  return static_cast<int>(static_cast<int64_t>(low(a)) * low(b));
}
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

/*! \brief |a - b| + c */
inline unsigned __sad(int a, int b, unsigned c) {
  return (a < b ? static_cast<unsigned>(b) - a : static_cast<unsigned>(a) - b) + c;
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a < b ? b - a : a - b) + c; }

// Averages that do not overflow: rounded down, or with an r up.
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b) >> 1); }
inline int __rhadd(int a, int b) {
  return static_cast<int>((static_cast<int64_t>(a) + b + 1) >> 1);
}
inline unsigned __uhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) + b) >> 1);
}
inline unsigned __urhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) + b + 1) >> 1);
}

/*! \brief Where the n-th bit that is set stands, counted from a place up, or down if n is below 0.
 */
inline unsigned __fns(unsigned mask, unsigned base, int n) {
  if (n == 0) return base < 32 && (mask >> base & 1) ? base : 0xffffffff;
  for (unsigned at = base; at < 32; at += n < 0 ? -1 : 1) {
    if ((mask >> at & 1) == 0) continue;
    n += n < 0 ? 1 : -1;
    if (n == 0) return at;
  }
  return 0xffffffff;
}

/*! \brief The sum of the products of two halves of a with two bytes of b, from a bit on, and c. */
#define EMULATOR_DP2A(name, T, Half, Byte, from)                            \
  inline T name(T a, T b, T c) {                                            \
    unsigned sum = static_cast<unsigned>(c);                                \
    for (int i = 0; i < 2; ++i)                                             \
      sum += static_cast<unsigned>(static_cast<Half>(a >> 16 * i) *         \
                                   static_cast<Byte>(b >> (from + 8 * i))); \
    return static_cast<T>(sum);                                             \
  }
EMULATOR_DP2A(__dp2a_lo, int, short, signed char, 0)
EMULATOR_DP2A(__dp2a_hi, int, short, signed char, 16)
EMULATOR_DP2A(__dp2a_lo, unsigned, unsigned short, unsigned char, 0)
EMULATOR_DP2A(__dp2a_hi, unsigned, unsigned short, unsigned char, 16)
#undef EMULATOR_DP2A

// The instructions for dynamic programming: of three, of a sum and another, and not below 0 (relu).
#define EMULATOR_DPX(sign, T, most, than)                                              \
  inline T __vi##most##3_##sign(T a, T b, T c) {                                       \
    const T d = a than b ? a : b;                                                      \
    return d than c ? d : c;                                                           \
  }                                                                                    \
  inline T __viadd##most##_##sign(T a, T b, T c) {                                     \
    const T sum = static_cast<T>(static_cast<unsigned>(a) + static_cast<unsigned>(b)); \
    return sum than c ? sum : c;                                                       \
  }                                                                                    \
  inline T __vib##most##_##sign(T a, T b, bool* first) { return (*first = !(b than a)) ? a : b; }
#define EMULATOR_DPX_RELU(most, than)                                              \
  inline int __vi##most##_s32_relu(int a, int b) {                                 \
    const int c = a than b ? a : b;                                                \
    return c > 0 ? c : 0;                                                          \
  }                                                                                \
  inline int __vi##most##3_s32_relu(int a, int b, int c) {                         \
    return __vi##most##_s32_relu(a than b ? a : b, c);                             \
  }                                                                                \
  inline int __viadd##most##_s32_relu(int a, int b, int c) {                       \
    return __vi##most##_s32_relu(                                                  \
        static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)), c); \
  }
EMULATOR_DPX(s32, int, max, >)
EMULATOR_DPX(s32, int, min, <)
EMULATOR_DPX(u32, unsigned, max, >)
EMULATOR_DPX(u32, unsigned, min, <)
EMULATOR_DPX_RELU(max, >)
EMULATOR_DPX_RELU(min, <)
#undef EMULATOR_DPX
#undef EMULATOR_DPX_RELU

/*! \brief The sum of the products of four bytes each, and c. */
inline int __dp4a(int a, int b, int c) {
  unsigned sum = static_cast<unsigned>(c);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
  return static_cast<int>(sum);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
  return c;
}

#endif  // EMULATOR_BITS_H_

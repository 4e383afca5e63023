/*!
 * \file small_float_functions.h
 * \brief The functions that CUDA has for float16 and for bfloat16 alike.
 *
 * No templates, so that arguments are converted as in any call; cuda_fp16.h and cuda_bf16.h make
 * them with EMULATOR_SMALL_FLOAT_FUNCTIONS(type, pair).
 */
#ifndef EMULATOR_SMALL_FLOAT_FUNCTIONS_H_
#define EMULATOR_SMALL_FLOAT_FUNCTIONS_H_

#include "emulator/atomics.h"
#include "emulator/small_float.h"

// One operation on numbers, and the same on pairs.
#define EMULATOR_SMALL_UNARY(H, H2, name, name2, expression) \
  inline H name(H a) { return expression; }                  \
  inline H2 name2(H2 a) { return H2(name(a.x), name(a.y)); }
#define EMULATOR_SMALL_BINARY(H, H2, name, name2, expression) \
  inline H name(H a, H b) { return expression; }              \
  inline H2 name2(H2 a, H2 b) { return H2(name(a.x, b.x), name(a.y, b.y)); }
#define EMULATOR_SMALL_TERNARY(H, H2, name, name2, expression) \
  inline H name(H a, H b, H c) { return expression; }          \
  inline H2 name2(H2 a, H2 b, H2 c) { return H2(name(a.x, b.x, c.x), name(a.y, b.y, c.y)); }

// A comparison; `u` is true as well if a number is NaN. Pairs give 1 or 0 each, or all (`hb`).
#define EMULATOR_SMALL_COMPARE(H, H2, op, sign)                                          \
  inline bool __h##op(H a, H b) { return a sign b; }                                     \
  inline bool __h##op##u(H a, H b) { return a != a || b != b || a sign b; }              \
  inline H2 __h##op##2(H2 a, H2 b) { return H2(H(a.x sign b.x), H(a.y sign b.y)); }      \
  inline H2 __h##op##u2(H2 a, H2 b) {                                                    \
    return H2(H(__h##op##u(a.x, b.x)), H(__h##op##u(a.y, b.y)));                         \
  }                                                                                      \
  inline bool __hb##op##2(H2 a, H2 b) { return __h##op(a.x, b.x) && __h##op(a.y, b.y); } \
  inline bool __hb##op##u2(H2 a, H2 b) { return __h##op##u(a.x, b.x) && __h##op##u(a.y, b.y); }

#define EMULATOR_SMALL_ARITHMETIC(H, H2)                                                       \
  EMULATOR_SMALL_BINARY(H, H2, __hadd, __hadd2, a + b)                                         \
  EMULATOR_SMALL_BINARY(H, H2, __hsub, __hsub2, a - b)                                         \
  EMULATOR_SMALL_BINARY(H, H2, __hmul, __hmul2, a* b)                                          \
  EMULATOR_SMALL_BINARY(H, H2, __hdiv, __h2div, a / b)                                         \
  EMULATOR_SMALL_BINARY(H, H2, __hadd_rn, __hadd2_rn, a + b)                                   \
  EMULATOR_SMALL_BINARY(H, H2, __hsub_rn, __hsub2_rn, a - b)                                   \
  EMULATOR_SMALL_BINARY(H, H2, __hmul_rn, __hmul2_rn, a* b)                                    \
  EMULATOR_SMALL_BINARY(H, H2, __hadd_sat, __hadd2_sat, emulator::saturated(a + b))            \
  EMULATOR_SMALL_BINARY(H, H2, __hsub_sat, __hsub2_sat, emulator::saturated(a - b))            \
  EMULATOR_SMALL_BINARY(H, H2, __hmul_sat, __hmul2_sat, emulator::saturated(a* b))             \
  EMULATOR_SMALL_TERNARY(H, H2, __hfma, __hfma2,                                               \
                         emulator::multiply_add_to_odd(a.wide(), b.wide(), c.wide()))          \
  EMULATOR_SMALL_TERNARY(H, H2, __hfma_sat, __hfma2_sat, emulator::saturated(__hfma(a, b, c))) \
  EMULATOR_SMALL_TERNARY(H, H2, __hfma_relu, __hfma2_relu,                                     \
                         emulator::extreme(__hfma(a, b, c), H(0), true, true))                 \
  EMULATOR_SMALL_UNARY(H, H2, __hneg, __hneg2, -a)                                             \
  EMULATOR_SMALL_UNARY(H, H2, __habs, __habs2, H::of_bits(a.bits() & 0x7fff))                  \
  EMULATOR_SMALL_BINARY(H, H2, __hmax, __hmax2, emulator::extreme(a, b, true, false))          \
  EMULATOR_SMALL_BINARY(H, H2, __hmin, __hmin2, emulator::extreme(a, b, false, false))         \
  EMULATOR_SMALL_BINARY(H, H2, __hmax_nan, __hmax2_nan, emulator::extreme(a, b, true, true))   \
  EMULATOR_SMALL_BINARY(H, H2, __hmin_nan, __hmin2_nan, emulator::extreme(a, b, false, true))  \
  inline bool __hisnan(H a) { return a != a; }                                                 \
  inline H2 __hisnan2(H2 a) { return H2(H(a.x != a.x), H(a.y != a.y)); }                       \
  inline int __hisinf(H a) { return std::isinf(a.wide()) ? (a.wide() > 0 ? 1 : -1) : 0; }

#define EMULATOR_SMALL_MATHEMATICS(H, H2)                                \
  EMULATOR_SMALL_UNARY(H, H2, hexp, h2exp, std::exp(a.wide()))           \
  EMULATOR_SMALL_UNARY(H, H2, hexp2, h2exp2, std::exp2(a.wide()))        \
  EMULATOR_SMALL_UNARY(H, H2, hexp10, h2exp10, std::pow(10.0, a.wide())) \
  EMULATOR_SMALL_UNARY(H, H2, hlog, h2log, std::log(a.wide()))           \
  EMULATOR_SMALL_UNARY(H, H2, hlog2, h2log2, std::log2(a.wide()))        \
  EMULATOR_SMALL_UNARY(H, H2, hlog10, h2log10, std::log10(a.wide()))     \
  EMULATOR_SMALL_UNARY(H, H2, hsin, h2sin, std::sin(a.wide()))           \
  EMULATOR_SMALL_UNARY(H, H2, hcos, h2cos, std::cos(a.wide()))           \
  EMULATOR_SMALL_UNARY(H, H2, htanh, h2tanh, std::tanh(a.wide()))        \
  EMULATOR_SMALL_UNARY(H, H2, hsqrt, h2sqrt, std::sqrt(a.wide()))        \
  EMULATOR_SMALL_UNARY(H, H2, hrsqrt, h2rsqrt, 1 / std::sqrt(a.wide()))  \
  EMULATOR_SMALL_UNARY(H, H2, hrcp, h2rcp, 1 / a.wide())                 \
  EMULATOR_SMALL_UNARY(H, H2, hfloor, h2floor, std::floor(a.wide()))     \
  EMULATOR_SMALL_UNARY(H, H2, hceil, h2ceil, std::ceil(a.wide()))        \
  EMULATOR_SMALL_UNARY(H, H2, htrunc, h2trunc, std::trunc(a.wide()))     \
  EMULATOR_SMALL_UNARY(H, H2, hrint, h2rint, std::nearbyint(a.wide()))

#define EMULATOR_SMALL_PAIRS(H, H2)                                     \
  inline float __low2float(H2 a) { return a.x; }                        \
  inline float __high2float(H2 a) { return a.y; }                       \
  inline H2 __lowhigh2highlow(H2 a) { return H2(a.y, a.x); }            \
  inline H atomicAdd(H* p, H v) {                                       \
    return emulator::atomic_update(p, [v](H old) { return old + v; });  \
  }                                                                     \
  inline H2 atomicAdd(H2* p, H2 v) {                                    \
    return emulator::atomic_update(p, [v](H2 old) { return old + v; }); \
  }

#define EMULATOR_SMALL_FLOAT_FUNCTIONS(H, H2) \
  EMULATOR_SMALL_ARITHMETIC(H, H2)            \
  EMULATOR_SMALL_MATHEMATICS(H, H2)           \
  EMULATOR_SMALL_COMPARE(H, H2, eq, ==)       \
  EMULATOR_SMALL_COMPARE(H, H2, ne, !=)       \
  EMULATOR_SMALL_COMPARE(H, H2, lt, <)        \
  EMULATOR_SMALL_COMPARE(H, H2, le, <=)       \
  EMULATOR_SMALL_COMPARE(H, H2, gt, >)        \
  EMULATOR_SMALL_COMPARE(H, H2, ge, >=)       \
  EMULATOR_SMALL_PAIRS(H, H2)

// Conversions; `half` or `bfloat16` is part of their names.
#define EMULATOR_SMALL_FLOAT_CONVERSIONS(H, H2, name)                                  \
  inline H __float2##name(float x) { return H(x); }                                    \
  inline H __double2##name(double x) { return H(x); }                                  \
  inline float __##name##2float(H a) { return a; }                                     \
  EMULATOR_SMALL_TO(H, name, rn, kNearest, std::nearbyint)                             \
  EMULATOR_SMALL_TO(H, name, rz, kZero, std::trunc)                                    \
  EMULATOR_SMALL_TO(H, name, ru, kUp, std::ceil)                                       \
  EMULATOR_SMALL_TO(H, name, rd, kDown, std::floor)                                    \
  inline short __##name##_as_short(H a) { return static_cast<short>(a.bits()); }       \
  inline unsigned short __##name##_as_ushort(H a) { return a.bits(); }                 \
  inline H __short_as_##name(short x) { return H::of_bits(static_cast<uint16_t>(x)); } \
  inline H __ushort_as_##name(unsigned short x) { return H::of_bits(x); }              \
  inline H2 __float2##name##2_rn(float x) { return H2(H(x), H(x)); }                   \
  inline H2 __floats2##name##2_rn(float x, float y) { return H2(H(x), H(y)); }         \
  inline H2 __float22##name##2_rn(float2 v) { return H2(H(v.x), H(v.y)); }             \
  inline float2 __##name##22float2(H2 a) { return make_float2(a.x, a.y); }             \
  inline H2 __##name##2##name##2(H a) { return H2(a, a); }                             \
  inline H2 __halves2##name##2(H a, H b) { return H2(a, b); }                          \
  inline H2 make_##name##2(H a, H b) { return H2(a, b); }                              \
  inline H __low2##name(H2 a) { return a.x; }                                          \
  inline H __high2##name(H2 a) { return a.y; }                                         \
  inline H2 __low2##name##2(H2 a) { return H2(a.x, a.x); }                             \
  inline H2 __high2##name##2(H2 a) { return H2(a.y, a.y); }                            \
  inline H2 __highs2##name##2(H2 a, H2 b) { return H2(a.y, b.y); }                     \
  inline H2 __lows2##name##2(H2 a, H2 b) { return H2(a.x, b.x); }

// Those that round; NaN becomes 0, and what no integer can hold the nearest one.
#define EMULATOR_SMALL_TO(H, name, way, round, whole)                               \
  inline H __float2##name##_##way(float x) { return H(x, emulator::Round::round); } \
  EMULATOR_SMALL_TO_INTEGER(H, name, way, round, whole, int, int)                   \
  EMULATOR_SMALL_TO_INTEGER(H, name, way, round, whole, uint, unsigned)             \
  EMULATOR_SMALL_TO_INTEGER(H, name, way, round, whole, short, short)               \
  EMULATOR_SMALL_TO_INTEGER(H, name, way, round, whole, ushort, unsigned short)     \
  EMULATOR_SMALL_TO_INTEGER(H, name, way, round, whole, ll, long long)              \
  EMULATOR_SMALL_TO_INTEGER(H, name, way, round, whole, ull, unsigned long long)

#define EMULATOR_SMALL_TO_INTEGER(H, name, way, round, whole, integer, T) \
  inline H __##integer##2##name##_##way(T x) {                            \
    return H(emulator::integer_to_odd(x), emulator::Round::round);        \
  }                                                                       \
  inline T __##name##2##integer##_##way(H a) { return emulator::to_integer<T>(whole(a.wide())); }

#endif  // EMULATOR_SMALL_FLOAT_FUNCTIONS_H_

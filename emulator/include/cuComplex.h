/*!
 * \file cuComplex.h
 * \brief Complex numbers as C has them: functions on pairs of floats or doubles.
 */
#ifndef CUCOMPLEX_H_
#define CUCOMPLEX_H_

// What helper headers look for.
#define CU_COMPLEX_H_

#include <math.h>

#include "emulator/vector_types.h"

typedef float2 cuFloatComplex;
typedef cuFloatComplex cuComplex;
typedef double2 cuDoubleComplex;

// Quotients and absolute values scale first, so that squares neither overflow nor vanish.
#define EMULATOR_COMPLEX(Complex, T, f, fabs_, sqrt_)                                     \
  inline Complex make_##Complex(T x, T y) { return {x, y}; }                              \
  inline T cuCreal##f(Complex x) { return x.x; }                                          \
  inline T cuCimag##f(Complex x) { return x.y; }                                          \
  inline Complex cuConj##f(Complex x) { return {x.x, -x.y}; }                             \
  inline Complex cuCadd##f(Complex x, Complex y) { return {x.x + y.x, x.y + y.y}; }       \
  inline Complex cuCsub##f(Complex x, Complex y) { return {x.x - y.x, x.y - y.y}; }       \
  inline Complex cuCmul##f(Complex x, Complex y) {                                        \
    return {x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x};                                \
  }                                                                                       \
  inline Complex cuCdiv##f(Complex x, Complex y) {                                        \
    const T scale = 1 / (fabs_(y.x) + fabs_(y.y));                                        \
    const T a = x.x * scale, b = x.y * scale, c = y.x * scale, d = y.y * scale;           \
    const T size = 1 / (c * c + d * d);                                                   \
    return {(a * c + b * d) * size, (b * c - a * d) * size};                              \
  }                                                                                       \
  inline T cuCabs##f(Complex x) {                                                         \
    const T a = fabs_(x.x), b = fabs_(x.y), large = a > b ? a : b, small = a > b ? b : a; \
    const T ratio = small / large;                                                        \
    /* 0, infinity and NaN */                                                             \
    if (large == 0 || !(large - large == 0) || small != small) return a + b;              \
    return large * sqrt_(1 + ratio * ratio);                                              \
  }                                                                                       \
  inline Complex cuCfma##f(Complex x, Complex y, Complex z) {                             \
    return {x.x * y.x - x.y * y.y + z.x, x.x * y.y + x.y * y.x + z.y};                    \
  }

EMULATOR_COMPLEX(cuFloatComplex, float, f, fabsf, sqrtf)
EMULATOR_COMPLEX(cuDoubleComplex, double, , fabs, sqrt)
#undef EMULATOR_COMPLEX

inline cuComplex make_cuComplex(float x, float y) { return {x, y}; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) { return {x.x, x.y}; }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) {
  return {static_cast<float>(x.x), static_cast<float>(x.y)};
}

#endif  // CUCOMPLEX_H_

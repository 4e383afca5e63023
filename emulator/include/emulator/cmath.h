/*!
 * \file cmath.h
 * \brief <cmath> without std::riemann_zeta and its like.
 *
 * In libstdc++ these functions of C++17, which no GPU has, are half of what the compiler has to
 * read before a kernel. And with the GPU's fmax and fmin.
 */
#ifndef EMULATOR_CMATH_H_
#define EMULATOR_CMATH_H_

#include <cstddef>  // the first header of the library defines the macro, where there is one

// Of 0 and -0 the C library gives the one that comes second, and the compiler swaps the two. Under
// names of our own, what std::fmax is made of comes here, too (src/extremes.cc).
#ifdef __GLIBC__
extern "C" {
float fmaxf(float, float) noexcept __asm__("emulator_fmaxf");
float fminf(float, float) noexcept __asm__("emulator_fminf");
double fmax(double, double) noexcept __asm__("emulator_fmax");
double fmin(double, double) noexcept __asm__("emulator_fmin");
}
#endif

#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#include <cmath>

#endif  // EMULATOR_CMATH_H_

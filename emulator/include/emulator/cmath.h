/*!
 * \file cmath.h
 * \brief <cmath> without std::riemann_zeta and its like.
 *
 * In libstdc++ these functions of C++17, which no GPU has, are half of what the compiler has to
 * read before a kernel.
 */
#ifndef EMULATOR_CMATH_H_
#define EMULATOR_CMATH_H_

#include <cstddef>  // the first header of the library defines the macro, where there is one

#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#include <cmath>

#endif  // EMULATOR_CMATH_H_

/*!
 * \file extremes.cc
 * \brief fmax and fmin as a GPU has them: 0 is more than -0. See emulator/cmath.h.
 */
#include "emulator/math.h"

extern "C" {
float emulator_fmaxf(float a, float b) { return max(a, b); }
float emulator_fminf(float a, float b) { return min(a, b); }
double emulator_fmax(double a, double b) { return max(a, b); }
double emulator_fmin(double a, double b) { return min(a, b); }
}

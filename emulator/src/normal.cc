/*!
 * \file normal.cc
 * \brief The inverses of the normal distribution and of the error function.
 */
#include <cmath>

#include "emulator/math.h"

// Newton's steps, from a start where they go one way only: the tails are worked out on the side
// where probabilities are small, so that no digits are lost.
double normcdfinv(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
  if (p > 0.5) return -normcdfinv(1 - p);
  double x = p > 0.02 ? 0 : -std::sqrt(-2 * std::log(p));
  for (int step = 0; step < 100; ++step) {
    const double density = std::exp(-x * x / 2) * 0.3989422804014327;
    // Halley's: the distribution's second derivative is -x times its first.
    const double change = (normcdf(x) - p) / density;
    const double next = x - change / (1 + x * change / 2);
    if (std::fabs(next - x) <= 1e-15 * std::fabs(next)) return next;
    x = next;
  }
  return x;
}

double erfinv(double x) {
  if (std::fabs(x) < 1e-8) return x * 0.8862269254527580;  // the root of pi, halved
  double y = normcdfinv((x + 1) / 2) * 0.7071067811865476;
  // (x + 1) / 2 has lost digits of a small x.
  if (std::fabs(x) < 0.5) y -= (std::erf(y) - x) * 0.8862269254527580 * std::exp(y * y);
  return y;
}

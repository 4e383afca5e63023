/*!
 * \file small_float.h
 * \brief Numbers of 16 bits: float16 and bfloat16, bit for bit.
 *
 * Every operation is done in double and rounded once. For sums, products, quotients and roots
 * that is exact, since double has more than twice as many bits; for a fused product and sum,
 * what double loses is kept as a last bit of 1 ("rounding to odd").
 */
#ifndef EMULATOR_SMALL_FLOAT_H_
#define EMULATOR_SMALL_FLOAT_H_

#include <cstdint>
#include <cstring>

#include "emulator/math.h"
#include "emulator/type_traits.h"

namespace emulator {

enum class Round { kNearest, kZero, kUp, kDown };

/*! \brief Whether to count up, given the digits that are dropped. */
inline bool rounds_up(Round round, bool negative, bool odd, uint64_t rest, uint64_t half) {
  if (round == Round::kNearest) return rest > half || (rest == half && odd);
  if (round == Round::kUp) return rest != 0 && !negative;
  return round == Round::kDown && rest != 0 && negative;
}

/*! \brief A double as a sign, `E` bits of exponent and `M` of mantissa. NaN becomes 0x7fff. */
template <int E, int M>
uint16_t round_to(double x, Round round = Round::kNearest) {
  const int bias = (1 << (E - 1)) - 1;
  const uint64_t infinity = ((1ull << E) - 1) << M;
  const uint64_t bits = bit_cast<uint64_t>(x);
  const bool negative = bits >> 63 != 0;
  const uint64_t sign = negative ? 0x8000 : 0;
  if (x != x) return 0x7fff;
  if (std::isinf(x)) return static_cast<uint16_t>(sign | infinity);
  int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  uint64_t digits = bits & ((1ull << 52) - 1);
  if (exponent != 0) digits |= 1ull << 52;
  exponent += bias - 1023;
  int drop = 52 - M;
  if (exponent < 1) {  // a denormal number: fewer digits
    drop += 1 - exponent;
    exponent = 1;
  }
  if (drop > 60) {  // far below the smallest number
    digits = digits != 0;
    drop = 60;
  }
  const uint64_t rest = digits & ((1ull << drop) - 1), half = 1ull << (drop - 1);
  digits >>= drop;
  digits += rounds_up(round, negative, digits & 1, rest, half);
  uint64_t result = (static_cast<uint64_t>(exponent - 1) << M) + digits;
  if (result >= infinity)
    result = rounds_up(round, negative, true, half, half) ? infinity : infinity - 1;
  return static_cast<uint16_t>(sign | result);
}

/*! \brief The number that 16 bits stand for. */
template <int E, int M>
float value_of(uint16_t bits) {
  if (E == 8) return bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, rest = bits & 0x7fff;
  const uint32_t top = (1u << E) - 1, bias = (1u << (E - 1)) - 1;
  uint32_t result;
  if (rest >> M == top)
    result = 0x7f800000 | (rest & ((1u << M) - 1)) << (23 - M);
  else if (rest >> M == 0)
    result =
        bit_cast<uint32_t>(std::ldexp(static_cast<float>(rest), 1 - static_cast<int>(bias) - M));
  else
    result = (rest << (23 - M)) + ((127 - bias) << 23);
  return bit_cast<float>(sign | result);
}

/*! \brief a b + c, where a b is exact; inexact results get a last bit of 1. */
inline double multiply_add_to_odd(double a, double b, double c) {
  const double product = a * b, sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (c - part);
  uint64_t bits = bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1)) return sum;
  return bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

/*! \brief An integer as a double whose last bit says whether something was lost. */
template <typename T>
double integer_to_odd(T value) {
  const bool negative = value < 0;
  uint64_t size = static_cast<uint64_t>(value);
  if (negative) size = 0 - size;
  double result = size >> 53 == 0 ? static_cast<double>(size)
                                  : static_cast<double>(size >> 11 | ((size & 0x7ff) != 0)) * 2048;
  return negative ? -result : result;
}

inline double integer_to_odd(bool value) { return value; }

/*! \brief __half is SmallFloat<5, 10>, __nv_bfloat16 is SmallFloat<8, 7>. */
template <int E, int M>
class SmallFloat {
 public:
  SmallFloat() = default;
  SmallFloat(double x, Round round = Round::kNearest) : bits_(round_to<E, M>(x, round)) {}
  SmallFloat(float x) : SmallFloat(static_cast<double>(x)) {}
  template <typename T, typename = enable_if_t<std::is_integral<T>::value>>
  SmallFloat(T x) : SmallFloat(integer_to_odd(x)) {}
  operator float() const { return value_of<E, M>(bits_); }

  static SmallFloat of_bits(uint16_t bits) {
    SmallFloat result;
    result.bits_ = bits;
    return result;
  }
  uint16_t bits() const { return bits_; }
  double wide() const { return value_of<E, M>(bits_); }

  friend SmallFloat operator+(SmallFloat a, SmallFloat b) { return a.wide() + b.wide(); }
  friend SmallFloat operator-(SmallFloat a, SmallFloat b) { return a.wide() - b.wide(); }
  friend SmallFloat operator*(SmallFloat a, SmallFloat b) { return a.wide() * b.wide(); }
  friend SmallFloat operator/(SmallFloat a, SmallFloat b) { return a.wide() / b.wide(); }
  friend SmallFloat operator+(SmallFloat a) { return a; }
  friend SmallFloat operator-(SmallFloat a) { return of_bits(a.bits_ ^ 0x8000); }
  SmallFloat& operator+=(SmallFloat b) { return *this = *this + b; }
  SmallFloat& operator-=(SmallFloat b) { return *this = *this - b; }
  SmallFloat& operator*=(SmallFloat b) { return *this = *this * b; }
  SmallFloat& operator/=(SmallFloat b) { return *this = *this / b; }
  SmallFloat& operator++() { return *this += SmallFloat(1); }
  SmallFloat& operator--() { return *this -= SmallFloat(1); }
  friend bool operator==(SmallFloat a, SmallFloat b) { return a.wide() == b.wide(); }
  friend bool operator!=(SmallFloat a, SmallFloat b) { return a.wide() != b.wide(); }
  friend bool operator<(SmallFloat a, SmallFloat b) { return a.wide() < b.wide(); }
  friend bool operator<=(SmallFloat a, SmallFloat b) { return a.wide() <= b.wide(); }
  friend bool operator>(SmallFloat a, SmallFloat b) { return a.wide() > b.wide(); }
  friend bool operator>=(SmallFloat a, SmallFloat b) { return a.wide() >= b.wide(); }

 private:
  uint16_t bits_;
};

/*! \brief __half2 and __nv_bfloat162: a pair, on which everything is done twice. */
template <typename T>
struct alignas(4) SmallPair {
  T x, y;

  SmallPair() = default;
  SmallPair(T x, T y) : x(x), y(y) {}

  friend SmallPair operator+(SmallPair a, SmallPair b) { return {a.x + b.x, a.y + b.y}; }
  friend SmallPair operator-(SmallPair a, SmallPair b) { return {a.x - b.x, a.y - b.y}; }
  friend SmallPair operator*(SmallPair a, SmallPair b) { return {a.x * b.x, a.y * b.y}; }
  friend SmallPair operator/(SmallPair a, SmallPair b) { return {a.x / b.x, a.y / b.y}; }
  friend SmallPair operator-(SmallPair a) { return {-a.x, -a.y}; }
  SmallPair& operator+=(SmallPair b) { return *this = *this + b; }
  SmallPair& operator-=(SmallPair b) { return *this = *this - b; }
  SmallPair& operator*=(SmallPair b) { return *this = *this * b; }
  SmallPair& operator/=(SmallPair b) { return *this = *this / b; }
  friend bool operator==(SmallPair a, SmallPair b) { return a.x == b.x && a.y == b.y; }
  friend bool operator!=(SmallPair a, SmallPair b) { return a.x != b.x && a.y != b.y; }
};

template <typename T>
T saturated(T x) {
  return x > T(0) ? (x < T(1) ? x : T(1)) : T(0);  // NaN becomes 0
}

/*! \brief The larger (or smaller) of two; `keep` says whether one NaN is enough for NaN. */
template <typename T>
T extreme(T a, T b, bool larger, bool keep) {
  const bool nan_a = a != a, nan_b = b != b;
  if (nan_a || nan_b) return (nan_a && nan_b) || keep ? T::of_bits(0x7fff) : (nan_a ? b : a);
  if (a == b) return ((a.bits() & 0x8000) != 0) == larger ? b : a;  // -0 is less than +0
  return (a > b) == larger ? a : b;
}

}  // namespace emulator

#endif  // EMULATOR_SMALL_FLOAT_H_

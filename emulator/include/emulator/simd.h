/*!
 * \file simd.h
 * \brief Arithmetic on the two halves or the four bytes of a word: __vadd2, __vcmpgtu4 and so on.
 */
#ifndef EMULATOR_SIMD_H_
#define EMULATOR_SIMD_H_

namespace emulator {

/*! \brief What f makes of each part of two words; T is a part's type. */
template <typename T, typename F>
inline unsigned by_part(unsigned a, unsigned b, F f) {
  const int bits = 8 * sizeof(T), ones = (1 << bits) - 1;
  unsigned result = 0;
  for (int at = 0; at < 32; at += bits) {
    const int x = static_cast<T>(a >> at), y = static_cast<T>(b >> at);
    result |= static_cast<unsigned>(f(x, y) & ones) << at;
  }
  return result;
}

/*! \brief The sum of what f makes of each. */
template <typename T, typename F>
inline unsigned sum_of_parts(unsigned a, unsigned b, F f) {
  unsigned sum = 0;
  for (int at = 0; at < 32; at += 8 * static_cast<int>(sizeof(T)))
    sum += static_cast<unsigned>(f(static_cast<T>(a >> at), static_cast<T>(b >> at)));
  return sum;
}

/*! \brief The nearest number that T can hold. */
template <typename T>
inline int saturated(int x) {
  const bool has_sign = static_cast<T>(-1) < 0;
  const int bits = 8 * sizeof(T) - has_sign, most = (1 << bits) - 1, least = has_sign ? ~most : 0;
  return x < least ? least : x > most ? most : x;
}

}  // namespace emulator

// An expression of the parts x and y, of signed or unsigned halves and bytes.
#define EMULATOR_PARTS(name, T, of, expression)                            \
  inline unsigned name(unsigned a, unsigned b) {                           \
    return emulator::of<T>(a, b, [](int x, int y) { return expression; }); \
  }
#define EMULATOR_OF_ONE(name, T, expression)                                  \
  inline unsigned name(unsigned a) {                                          \
    return emulator::by_part<T>(a, 0, [](int x, int) { return expression; }); \
  }
#define EMULATOR_SIGNED(name, expression)                    \
  EMULATOR_PARTS(name##2, short, by_part, expression(short)) \
  EMULATOR_PARTS(name##4, signed char, by_part, expression(signed char))
#define EMULATOR_UNSIGNED(name, expression)                                    \
  EMULATOR_PARTS(name##2, unsigned short, by_part, expression(unsigned short)) \
  EMULATOR_PARTS(name##4, unsigned char, by_part, expression(unsigned char))
#define EMULATOR_COMPARED(name, sign, operation)                               \
  EMULATOR_PARTS(__vcmp##name##2, sign short, by_part, x operation y ? -1 : 0) \
  EMULATOR_PARTS(__vcmp##name##4, sign char, by_part, x operation y ? -1 : 0)  \
  EMULATOR_PARTS(__vset##name##2, sign short, by_part, x operation y ? 1 : 0)  \
  EMULATOR_PARTS(__vset##name##4, sign char, by_part, x operation y ? 1 : 0)

#define EMULATOR_ADD(T) x + y
#define EMULATOR_SUB(T) x - y
#define EMULATOR_ADD_SATURATED(T) emulator::saturated<T>(x + y)
#define EMULATOR_SUB_SATURATED(T) emulator::saturated<T>(x - y)
#define EMULATOR_MOST(T) (x > y ? x : y)
#define EMULATOR_LEAST(T) (x < y ? x : y)
#define EMULATOR_DISTANCE(T) (x > y ? x - y : y - x)
// Halves are rounded away from 0, or down.
#define EMULATOR_AVERAGE(T) (x + y + (x + y >= 0)) >> 1
#define EMULATOR_AVERAGE_DOWN(T) (x + y) >> 1
EMULATOR_UNSIGNED(__vadd, EMULATOR_ADD)
EMULATOR_UNSIGNED(__vsub, EMULATOR_SUB)
EMULATOR_SIGNED(__vaddss, EMULATOR_ADD_SATURATED)
EMULATOR_UNSIGNED(__vaddus, EMULATOR_ADD_SATURATED)
EMULATOR_SIGNED(__vsubss, EMULATOR_SUB_SATURATED)
EMULATOR_UNSIGNED(__vsubus, EMULATOR_SUB_SATURATED)
EMULATOR_SIGNED(__vmaxs, EMULATOR_MOST)
EMULATOR_UNSIGNED(__vmaxu, EMULATOR_MOST)
EMULATOR_SIGNED(__vmins, EMULATOR_LEAST)
EMULATOR_UNSIGNED(__vminu, EMULATOR_LEAST)
EMULATOR_SIGNED(__vabsdiffs, EMULATOR_DISTANCE)
EMULATOR_UNSIGNED(__vabsdiffu, EMULATOR_DISTANCE)
EMULATOR_SIGNED(__vavgs, EMULATOR_AVERAGE)
EMULATOR_UNSIGNED(__vavgu, EMULATOR_AVERAGE)
EMULATOR_UNSIGNED(__vhaddu, EMULATOR_AVERAGE_DOWN)
EMULATOR_PARTS(__vsads2, short, sum_of_parts, EMULATOR_DISTANCE())
EMULATOR_PARTS(__vsads4, signed char, sum_of_parts, EMULATOR_DISTANCE())
EMULATOR_PARTS(__vsadu2, unsigned short, sum_of_parts, EMULATOR_DISTANCE())
EMULATOR_PARTS(__vsadu4, unsigned char, sum_of_parts, EMULATOR_DISTANCE())
EMULATOR_OF_ONE(__vabs2, short, x < 0 ? -x : x)
EMULATOR_OF_ONE(__vabs4, signed char, x < 0 ? -x : x)
EMULATOR_OF_ONE(__vabsss2, short, emulator::saturated<short>(x < 0 ? -x : x))
EMULATOR_OF_ONE(__vabsss4, signed char, emulator::saturated<signed char>(x < 0 ? -x : x))
EMULATOR_OF_ONE(__vneg2, short, -x)
EMULATOR_OF_ONE(__vneg4, signed char, -x)
EMULATOR_OF_ONE(__vnegss2, short, emulator::saturated<short>(-x))
EMULATOR_OF_ONE(__vnegss4, signed char, emulator::saturated<signed char>(-x))
EMULATOR_COMPARED(eq, unsigned, ==)
EMULATOR_COMPARED(ne, unsigned, !=)
EMULATOR_COMPARED(ges, signed, >=)
EMULATOR_COMPARED(geu, unsigned, >=)
EMULATOR_COMPARED(gts, signed, >)
EMULATOR_COMPARED(gtu, unsigned, >)
EMULATOR_COMPARED(les, signed, <=)
EMULATOR_COMPARED(leu, unsigned, <=)
EMULATOR_COMPARED(lts, signed, <)
EMULATOR_COMPARED(ltu, unsigned, <)
#undef EMULATOR_ADD
#undef EMULATOR_SUB
#undef EMULATOR_ADD_SATURATED
#undef EMULATOR_SUB_SATURATED
#undef EMULATOR_MOST
#undef EMULATOR_LEAST
#undef EMULATOR_DISTANCE
#undef EMULATOR_AVERAGE
#undef EMULATOR_AVERAGE_DOWN
#undef EMULATOR_COMPARED
#undef EMULATOR_UNSIGNED
#undef EMULATOR_SIGNED
#undef EMULATOR_OF_ONE
#undef EMULATOR_PARTS

#endif  // EMULATOR_SIMD_H_

/*!
 * \file tensor_cores.h
 * \brief Instructions of tensor cores that are written as assembler; cuda_source/assembler.py makes
 * the calls.
 *
 * Here PTX says which thread has what. Thread 4 g + t of a warp has of a (16 rows) words of rows g
 * and g + 8, word t and word t + 4 of each; of b (8 columns) words t and t + 4 of column g; of c
 * and d rows g and g + 8, columns 2 t and 2 t + 1. A word is one number of TF32, or two of 16 bits
 * that are neighbours along K. Sums go up along K in float; a GPU adds several at once, so last
 * bits may differ.
 */
#ifndef EMULATOR_TENSOR_CORES_H_
#define EMULATOR_TENSOR_CORES_H_

#include <cstdint>
#include <cstring>

#include "emulator/warp.h"

namespace emulator {
namespace tensor_cores {

inline float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

/*! \brief Float whose last 13 bits are dropped. */
struct Tf32 {
  static const int of_word = 1;
  static float number(uint32_t word, int) { return from_bits(word & 0xffffe000u); }
};

struct Bf16 {
  static const int of_word = 2;
  static float number(uint32_t word, int i) {
    return from_bits(i == 0 ? word << 16 : word & 0xffff0000u);
  }
};

struct F16 {
  static const int of_word = 2;
  static float number(uint32_t word, int i) {
    const uint16_t bits = static_cast<uint16_t>(i == 0 ? word : word >> 16);
    _Float16 x;
    std::memcpy(&x, &bits, sizeof(x));
    return static_cast<float>(x);
  }
};

/*! \brief Words that all lanes give, two from each. */
struct Given {
  uint64_t of_lane[warpSize];

  Given(uint32_t first, uint32_t second) {
    emulator_gather(0xffffffffu, first | static_cast<uint64_t>(second) << 32, of_lane);
  }
  uint32_t word(int lane, int i) const { return static_cast<uint32_t>(of_lane[lane] >> 32 * i); }
};

/*! \brief c + a b for one row and one column; row and column give words t of 4, twice. */
template <class Kind>
float sum_up(float c, const Given& rows, int row, const Given& columns, int column) {
  for (int half = 0; half < 2; ++half)
    for (int t = 0; t < 4; ++t)
      for (int i = 0; i < Kind::of_word; ++i)
        c += Kind::number(rows.word(4 * row + t, half), i) *
             Kind::number(columns.word(4 * column + t, half), i);
  return c;
}

template <class Kind>
void multiply(float& d0, float& d1, float& d2, float& d3, uint32_t a0, uint32_t a1, uint32_t a2,
              uint32_t a3, uint32_t b0, uint32_t b1, float c0, float c1, float c2, float c3) {
  const Given upper(a0, a2), lower(a1, a3), b(b0, b1);
  const int g = emulator_lane() / 4, column = emulator_lane() % 4 * 2;
  d0 = sum_up<Kind>(c0, upper, g, b, column);
  d1 = sum_up<Kind>(c1, upper, g, b, column + 1);
  d2 = sum_up<Kind>(c2, lower, g, b, column);
  d3 = sum_up<Kind>(c3, lower, g, b, column + 1);
}

template <class... All>
void multiply_tf32(All&&... all) {
  multiply<Tf32>(all...);
}
template <class... All>
void multiply_f16(All&&... all) {
  multiply<F16>(all...);
}
template <class... All>
void multiply_bf16(All&&... all) {
  multiply<Bf16>(all...);
}

/*! \brief To the nearest number of TF32, halves away from 0. */
inline void to_tf32(uint32_t& to, float x) {
  std::memcpy(&to, &x, sizeof(to));
  if ((to & 0x7f800000u) != 0x7f800000u) to = (to + 0x1000u) & 0xffffe000u;
}

/*! \brief To the nearest number of bfloat16, ties to even; NaN is one number. */
inline void to_bf16(uint16_t& to, float x) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof(word));
  to = static_cast<uint16_t>(x != x ? 0x7fff : (word + 0x7fff + ((word >> 16) & 1)) >> 16);
}

}  // namespace tensor_cores
}  // namespace emulator

#endif  // EMULATOR_TENSOR_CORES_H_

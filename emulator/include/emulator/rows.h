/*!
 * \file rows.h
 * \brief Runs a row: the threads of a block that differ in x alone.
 *
 * block_loops/row_checks.py and block_loops/thread_loops.py write what differs from kernel to
 * kernel, as functions of a thread `x`, or of the `n` threads from x on:
 *
 *   active(x)       whether it runs the body, which stands in conditions
 *   integers(x)     the integers of it that are compared, as Integers
 *   together(x, n)  whether these threads may run the body side by side
 *   body(x, n)      runs it
 */
#ifndef EMULATOR_ROWS_H_
#define EMULATOR_ROWS_H_

#pragma GCC system_header

#include "emulator/language.h"
#include "emulator/type_traits.h"

namespace emulator {

/*! \brief A number of threads side by side that the compiler knows. */
template <int n>
using Threads = std::integral_constant<int, n>;

/*! \brief Whether a number of threads is a whole row's, which only the program knows. */
template <typename Count>
constexpr bool is_row = std::is_same<Count, int>::value;

const unsigned kChunk = 16;

/*! \brief Widths of most blocks of two dimensions: rows of them have loops of their own. */
const int kTileRow = 16, kWarpRow = 32;

/*! \brief Integers of a thread; said of each is whether it grows by 1 to the next one. */
template <bool... by_one>
struct Integers {
  long long at[sizeof...(by_one)];
};

template <bool... by_one, typename... T>
__forceinline__ Integers<by_one...> integers(T... values) {
  return {{static_cast<long long>(values)...}};
}

template <bool... by_one>
__forceinline__ bool grow(const Integers<by_one...>& first, const Integers<by_one...>& last,
                          unsigned n) {
  bool all = true;
  int i = 0;
  (..., (all = all && last.at[i] - first.at[i] == (by_one ? n - 1ll : 0), ++i));
  return all;
}

/*! \brief Whether integers of n threads grow as is said of them, or are the same. */
template <typename Of>
__forceinline__ bool grow(const Of& of, unsigned x, unsigned n) {
  return grow(of(x), of(x + n - 1), n);
}

/*! \brief The same, and none is below 0: beside an unsigned one it would be the greatest. */
template <typename Of>
__forceinline__ bool rise(const Of& of, unsigned x, unsigned n) {
  const auto first = of(x);
  bool all = true;
  for (long long value : first.at) all = all && value >= 0;
  return all && grow(first, of(x + n - 1), n);
}

/*! \brief Whether the first and the last of n threads meet a condition. */
template <typename Condition>
__forceinline__ bool both_ends(const Condition& condition, unsigned x, unsigned n) {
  return condition(x) && condition(x + n - 1);
}

/*! \brief An integer that grows by 1, for the t-th thread from its first one on. */
template <typename T>
__forceinline__ T further(T first, int t) {
  return static_cast<T>(first + static_cast<T>(t));
}

/*! \brief Whether the last of n integers is what the first one says if each is 1 more. */
template <typename T>
__forceinline__ bool follows(T first, T last, int n) {
  return static_cast<long long>(last) - static_cast<long long>(first) == n - 1;
}

/*!
 * \brief Whether T holds n integers from the first one on, none below 0: if the last one meets
 * `j < n`, so do those before it.
 */
template <typename T>
__forceinline__ bool holds(T first, int n) {
  const long long begin = static_cast<long long>(first), end = begin + n - 1;
  return begin >= 0 && static_cast<long long>(static_cast<T>(end)) == end;
}

/*!
 * \brief Runs `body(x, n)`, threads x .. x + n - 1, for all threads of a row that are active.
 *
 * Several at a time where `together(x, n)`: all, or with `chunks` kChunk. With `falling` the active
 * ones come first, if the row is `ordered`.
 */
template <bool chunks, bool falling, typename Active, typename Together, typename Body>
__forceinline__ void run_row(unsigned width, const Active& active, bool ordered,
                             const Together& together, const Body& body) {
  unsigned x = 0;
  const bool first = falling && ordered;
  if constexpr (falling) {
    if (ordered) {
      unsigned above = width, middle = width - 1;  // the first that is not lies in x .. above
      for (unsigned low = 0; low < above; middle = (low + above) / 2) {
        if (active(middle))
          low = middle + 1;
        else
          above = middle;
      }
      width = above;
    }
  }
  if constexpr (chunks) {
    for (unsigned n; x < width; x += n) {
      n = width - x < kChunk ? width - x : kChunk;
      bool all = n == kChunk && together(x, kChunk);
      if (!first)
        for (unsigned i = 0; i < n; ++i) all = all && active(x + i);
      if (all)
        body(x, Threads<kChunk>());
      else
        for (unsigned i = x; i < x + n; ++i)
          if (first || active(i)) body(i, Threads<1>());
    }
  } else {
    bool all = width > 0 && (first || !falling) && together(0, width);
    if constexpr (!falling)
      for (unsigned i = 0; i < width; ++i) all = all && active(i);
    if (!all) {
      for (; x < width; ++x)
        if (first || active(x)) body(x, Threads<1>());
    } else if (width == kTileRow) {
      body(0, kTileRow);
    } else if (width == kWarpRow) {
      body(0, kWarpRow);
    } else {
      body(0, static_cast<int>(width));
    }
  }
}

}  // namespace emulator

#endif  // EMULATOR_ROWS_H_

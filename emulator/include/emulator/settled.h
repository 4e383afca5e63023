/*!
 * \file settled.h
 * \brief What instrument/quick_loops.py adds to loops of the checked build that only read.
 */
#ifndef EMULATOR_SETTLED_H_
#define EMULATOR_SETTLED_H_

#ifdef EMULATOR_CHECKED

#include <type_traits>

extern "C" {
/*!
 * \brief Whether nothing has to be said of the reads of all turns of a loop, 4 bytes each.
 *
 * \param reads the addresses at the first turn, the second, and the last
 */
bool emulator_is_settled(const void* const* reads, long long turns);
}

namespace emulator {

/*! \brief How many turns `for (k = first; k < bound; k += step)` takes; 0 if that is not clear. */
template <typename First, typename Bound, typename Step>
long long turns_of(First first, Bound bound, Step step) {
  if (!std::is_integral<First>() || !std::is_integral<Bound>() || !std::is_integral<Step>())
    return 0;
  const long long begin = static_cast<long long>(first), end = static_cast<long long>(bound);
  const long long each = static_cast<long long>(step);
  if (begin < 0 || end <= begin || each <= 0) return 0;
  return (end - begin - 1) / each + 1;
}

}  // namespace emulator

#endif  // EMULATOR_CHECKED

#endif  // EMULATOR_SETTLED_H_

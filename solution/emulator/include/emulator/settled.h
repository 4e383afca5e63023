/*!
 * \file settled.h
 * \brief What quick_loops.py adds to loops of the checked build that only read.
 */
#ifndef EMULATOR_SETTLED_H_
#define EMULATOR_SETTLED_H_

#ifdef EMULATOR_CHECKED

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
inline long long turns_of(long long first, long long bound, long long step) {
  if (first < 0 || bound <= first || step <= 0) return 0;
  return (bound - first - 1) / step + 1;
}

}  // namespace emulator

#endif  // EMULATOR_CHECKED

#endif  // EMULATOR_SETTLED_H_

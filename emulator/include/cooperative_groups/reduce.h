/*!
 * \file cooperative_groups/reduce.h
 * \brief Sums and their like over the threads of a tile or of coalesced threads.
 */
#ifndef COOPERATIVE_GROUPS_REDUCE_H_
#define COOPERATIVE_GROUPS_REDUCE_H_

#include "cooperative_groups.h"

namespace cooperative_groups {

template <typename T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
/*! \brief The smaller one. */
template <typename T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
/*! \brief The larger one. */
template <typename T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <typename T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <typename T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <typename T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

/*! \brief The values of all threads of the group, brought together; all threads get it. */
template <typename Group, typename T, typename Op>
T reduce(const Group& group, T value, Op op) {
  T values[warpSize];
  group.gather(value, values);
  // Halves onto halves, as shuffles would do it, so that sums are rounded in that way.
  for (unsigned count = static_cast<unsigned>(group.size()); count > 1;) {
    unsigned half = (count + 1) / 2;
    for (unsigned i = 0; i + half < count; ++i) values[i] = op(values[i], values[i + half]);
    count = half;
  }
  return values[0];
}

}  // namespace cooperative_groups

#endif  // COOPERATIVE_GROUPS_REDUCE_H_

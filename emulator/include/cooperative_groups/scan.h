/*!
 * \file cooperative_groups/scan.h
 * \brief Running sums and their like over the threads of a tile or of coalesced threads.
 */
#ifndef COOPERATIVE_GROUPS_SCAN_H_
#define COOPERATIVE_GROUPS_SCAN_H_

#include "cooperative_groups/reduce.h"

namespace cooperative_groups {

/*! \brief The values of the ranks up to the own one, brought together. */
template <typename Group, typename T, typename Op>
T inclusive_scan(const Group& group, T value, Op op) {
  T values[warpSize];
  group.gather(value, values);
  T result = values[0];
  for (unsigned r = 1; r <= group.thread_rank(); ++r) result = op(result, values[r]);
  return result;
}
template <typename Group, typename T>
T inclusive_scan(const Group& group, T value) {
  return inclusive_scan(group, value, plus<T>());
}

/*! \brief The values of the ranks below the own one; rank 0 gets T(). */
template <typename Group, typename T, typename Op>
T exclusive_scan(const Group& group, T value, Op op) {
  T values[warpSize];
  group.gather(value, values);
  if (group.thread_rank() == 0) return T();
  T result = values[0];
  for (unsigned r = 1; r < group.thread_rank(); ++r) result = op(result, values[r]);
  return result;
}
template <typename Group, typename T>
T exclusive_scan(const Group& group, T value) {
  return exclusive_scan(group, value, plus<T>());
}

}  // namespace cooperative_groups

#endif  // COOPERATIVE_GROUPS_SCAN_H_

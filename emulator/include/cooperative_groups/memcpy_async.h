/*!
 * \file cooperative_groups/memcpy_async.h
 * \brief A group copies memory together. Here each thread copies its part at once.
 */
#ifndef COOPERATIVE_GROUPS_MEMCPY_ASYNC_H_
#define COOPERATIVE_GROUPS_MEMCPY_ASYNC_H_

#include "cooperative_groups.h"

namespace cooperative_groups {

/*! \brief Copies `size` bytes, which are there for all threads after wait(group). */
template <typename Group, typename T>
void memcpy_async(const Group& group, T* to, const T* from, size_t size) {
  char* out = reinterpret_cast<char*>(to);
  const char* in = reinterpret_cast<const char*>(from);
  const size_t step = sizeof(uint64_t);
  for (size_t i = group.thread_rank() * step; i < size; i += group.size() * step)
    std::memcpy(out + i, in + i, size - i < step ? size - i : step);
}

/*! \brief Waits for the group's copies, and for its threads. */
template <typename Group>
void wait(const Group& group) {
  group.sync();
}
template <unsigned Stages, typename Group>
void wait_prior(const Group& group) {
  group.sync();
}

}  // namespace cooperative_groups

#endif  // COOPERATIVE_GROUPS_MEMCPY_ASYNC_H_

/*!
 * \file heap.h
 * \brief Memory that kernels allocate by themselves.
 */
#ifndef EMULATOR_CHECKED_HEAP_H_
#define EMULATOR_CHECKED_HEAP_H_

#include "access.h"

namespace emulator {
namespace checked {

/*! \brief Whether a kernel ever allocated. */
extern bool heap_in_use EMULATOR_HIDDEN;

/*! \brief An access of what may be such memory; false if it is not. */
bool use_heap(uintptr_t address, size_t size, Access access, const void* place);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_HEAP_H_

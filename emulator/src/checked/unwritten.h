/*!
 * \file unwritten.h
 * \brief Results that no kernel wrote, copied to the host and read there.
 *
 * A copy of memory that is written in part alone may be meant: a buffer with room to spare, the
 * border of an image, the padding of a struct. It is a fault once the host reads such a value.
 */
#ifndef EMULATOR_CHECKED_UNWRITTEN_H_
#define EMULATOR_CHECKED_UNWRITTEN_H_

#include <cstddef>
#include <cstdint>

#include "shadow.h"

namespace emulator {
namespace checked {

/*! \brief Whether the host may hold such values at all. */
extern bool unwritten_in_use EMULATOR_HIDDEN;

/*! \brief A copy from the device to the host was made. */
void note_unwritten(uintptr_t to, uintptr_t from, size_t size);
/*! \brief An access of the host's memory by host code. */
void check_unwritten(uintptr_t address, size_t size, bool write, const void* place);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_UNWRITTEN_H_

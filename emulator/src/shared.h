/*!
 * \file shared.h
 * \brief The memory that holds shared variables, one piece for each CPU thread.
 */
#ifndef EMULATOR_SRC_SHARED_H_
#define EMULATOR_SRC_SHARED_H_

#include <cstddef>

namespace emulator {

/*! \brief Memory for the shared variables of a block. */
char* allocate_shared();
void free_shared(char* memory);
/*! \brief Makes the calling thread's shared variables lie there. */
void use_shared(char* memory);
/*! \brief Bytes of a piece, and where in it the dynamic variable lies. */
size_t shared_total();
size_t dynamic_shared_offset();

}  // namespace emulator

#endif  // EMULATOR_SRC_SHARED_H_

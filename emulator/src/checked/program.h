/*!
 * \file program.h
 * \brief The program that launches: its code, its variables, and the names of things.
 */
#ifndef EMULATOR_CHECKED_PROGRAM_H_
#define EMULATOR_CHECKED_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "../block.h"
#include "state.h"

namespace emulator {
namespace checked {

/*! \brief Makes the file that a kernel is from the program. */
void use_program(const Grid& grid);
/*! \brief Whether an address lies in a variable of the program. */
bool is_program_memory(uintptr_t address);
/*! \brief Whether an address lies in a variable that is the host's alone. */
bool is_host_variable(uintptr_t address);
/*! \brief Whether an address lies in a variable of the program, or in what the runtime itself hands
 * to kernels. */
bool is_own_memory(uintptr_t address);
/*! \brief The name of a kernel's parameter, by its position, or "". */
std::string parameter_name(const std::string& kernel, size_t position);
/*! \brief The shared variable that holds an offset in a block's memory. */
bool find_shared(size_t offset, std::string* name, size_t* start, size_t* size);
/*!
 * \brief Whether an address is what an index past the end of an array leads to, and the array is
 * the whole of a static shared variable that the block uses. Then it leaves the variable, which
 * `memory` gets, with the size of an element.
 */
bool leaves_shared(uintptr_t address, const ArrayType& array, int64_t index, Memory* memory,
                   size_t* element);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_PROGRAM_H_

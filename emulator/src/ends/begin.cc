/*!
 * \file begin.cc
 * \brief Linked before a library's CUDA sources: where their code and their variables begin.
 *
 * A linker lays out code in the order of what it links, and variables, those with a value and those
 * without. What is made first is unmade last: when all others are gone, also at dlclose.
 */
#include "../variables.h"

// Of this library alone, though others that are loaded have the same names.
#define OWN __attribute__((visibility("hidden")))

OWN void emulator_code_begin() {}
OWN alignas(64) char emulator_valued_begin[64] = {1};
OWN alignas(64) char emulator_zeroed_begin[64];

namespace {

struct Untold {
  ~Untold() {
    emulator::drop_code_of_kernels(reinterpret_cast<const void*>(emulator_code_begin));
    emulator::drop_variables(emulator_valued_begin + 64);
    emulator::drop_variables(emulator_zeroed_begin + 64);
  }
} untold;

}  // namespace

/*!
 * \file end.cc
 * \brief Linked after a library's CUDA sources: where their code and their variables end.
 *
 * This is initialised after them, too.
 */
#include "../variables.h"

// Of this library alone, though others that are loaded have the same names.
#define OWN __attribute__((visibility("hidden")))

OWN void emulator_code_begin();
OWN void emulator_code_end() {}
OWN extern char emulator_valued_begin[64], emulator_zeroed_begin[64];
OWN alignas(64) char emulator_valued_end[64] = {1};
OWN alignas(64) char emulator_zeroed_end[64];

namespace {

const void* address(void (*function)()) { return reinterpret_cast<const void*>(function); }

struct Told {
  Told() {
    emulator::add_code_of_kernels(address(emulator_code_begin), address(emulator_code_end));
#ifndef EMULATOR_WITH_THREADS
    emulator::add_variables(emulator_valued_begin + 64, emulator_valued_end);
    emulator::add_variables(emulator_zeroed_begin + 64, emulator_zeroed_end);
#endif
  }
} told;

}  // namespace

/*!
 * \file begin.cc
 * \brief Linked before a library's CUDA sources: where their code and their variables begin.
 *
 * A linker lays out code in the order of what it links, and variables, those with a value and those
 * without.
 */
void emulator_code_begin() {}
alignas(64) char emulator_valued_begin[64] = {1};
alignas(64) char emulator_zeroed_begin[64];

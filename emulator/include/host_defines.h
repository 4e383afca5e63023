/*!
 * \file host_defines.h
 * \brief The words that CUDA adds to C++, which emulator/language.h has.
 */
#include "emulator/language.h"

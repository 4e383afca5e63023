/*!
 * \file vector_functions.h
 * \brief Makers of CUDA's short vectors, which emulator/vector_types.h has.
 */
#include "emulator/vector_types.h"

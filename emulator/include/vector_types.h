/*!
 * \file vector_types.h
 * \brief CUDA's short vectors, which emulator/vector_types.h has.
 */
#include "emulator/vector_types.h"

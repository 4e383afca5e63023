/*!
 * \file surface_indirect_functions.h
 * \brief Textures, whose use is refused; the header alone is not.
 */
#include "cuda_runtime.h"

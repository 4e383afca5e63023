/*!
 * \file texture_types.h
 * \brief Textures, whose use is refused; the header alone is not.
 */
#include "cuda_runtime.h"

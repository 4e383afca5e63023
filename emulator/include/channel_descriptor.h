/*!
 * \file channel_descriptor.h
 * \brief Textures, whose use is refused; the header alone is not.
 */
#include "cuda_runtime.h"

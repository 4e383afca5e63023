/*!
 * \file builtin_types.h
 * \brief All types of CUDA, which cuda_runtime_api.h has.
 */
#include "cuda_runtime_api.h"

/*!
 * \file sm_20_intrinsics.h
 * \brief Functions of kernels, which cuda_runtime.h has.
 */
#include "cuda_runtime.h"

/*!
 * \file device_types.h
 * \brief Types of kernels, which cuda_runtime.h has.
 */
#include "cuda_runtime.h"

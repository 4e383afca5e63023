/*!
 * \file device_double_functions.h
 * \brief Functions of kernels for double, which cuda_runtime.h has.
 */
#include "cuda_runtime.h"

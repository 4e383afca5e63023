/*!
 * \file math_functions.h
 * \brief Mathematical functions, which cuda_runtime.h has.
 */
#include "cuda_runtime.h"

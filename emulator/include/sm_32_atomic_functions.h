/*!
 * \file sm_32_atomic_functions.h
 * \brief Atomic functions, which cuda_runtime.h has.
 */
#include "cuda_runtime.h"

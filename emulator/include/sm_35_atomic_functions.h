/*!
 * \file sm_35_atomic_functions.h
 * \brief Atomic functions, which cuda_runtime.h has.
 */
#include "cuda_runtime.h"

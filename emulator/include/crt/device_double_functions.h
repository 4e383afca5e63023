/*!
 * \file crt/device_double_functions.h
 * \brief Functions of the language, which cuda_runtime.h has.
 */
#include "cuda_runtime.h"

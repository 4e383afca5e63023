/*!
 * \file crt/host_runtime.h
 * \brief Functions of the language, which cuda_runtime.h has.
 */
#include "cuda_runtime.h"

/*!
 * \file host_config.h
 * \brief What the compiler of the host is, which cuda_runtime.h has.
 */
#include "cuda_runtime.h"

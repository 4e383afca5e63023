/*!
 * \file cuda_device_runtime_api.h
 * \brief The runtime inside of kernels, which cuda_runtime.h has.
 */
#include "cuda_runtime.h"

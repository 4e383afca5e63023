/*!
 * \file cuda_bf16.hpp
 * \brief bfloat16, which cuda_bf16.h has.
 */
#include "cuda_bf16.h"

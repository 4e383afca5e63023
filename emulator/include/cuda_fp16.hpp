/*!
 * \file cuda_fp16.hpp
 * \brief float16, which cuda_fp16.h has.
 */
#include "cuda_fp16.h"

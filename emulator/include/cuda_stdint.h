/*!
 * \file cuda_stdint.h
 * \brief Integers of a fixed size, which stdint.h has.
 */
#include "stdint.h"

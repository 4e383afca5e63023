/*!
 * \file cublas_api.h
 * \brief cuBLAS, which cublas_v2.h has.
 */
#include "cublas_v2.h"

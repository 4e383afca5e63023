/*!
 * \file cuda_pipeline_primitives.h
 * \brief Copies into shared memory, which cuda_pipeline.h has.
 */
#include "cuda_pipeline.h"

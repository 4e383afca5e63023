/*!
 * \file cudaProfiler.h
 * \brief The driver's marks for a profiler, which cuda.h has.
 */
#include "cuda.h"

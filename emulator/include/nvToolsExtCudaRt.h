/*!
 * \file nvToolsExtCudaRt.h
 * \brief Marks for a profiler, which nvtx3/nvToolsExt.h has.
 */
#include "nvtx3/nvToolsExt.h"

/*!
 * \file stream.h
 * \brief Which streams there are.
 */
#ifndef EMULATOR_STREAM_H_
#define EMULATOR_STREAM_H_

#include "cuda_runtime_api.h"

namespace emulator {

/*! \brief Whether a stream was created and not destroyed, or is one that is always there. */
bool is_stream(cudaStream_t stream);

}  // namespace emulator

#endif  // EMULATOR_STREAM_H_

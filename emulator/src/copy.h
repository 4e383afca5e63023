/*!
 * \file copy.h
 * \brief Copies and fills, for nodes of graphs.
 */
#ifndef EMULATOR_COPY_H_
#define EMULATOR_COPY_H_

#include "cuda_runtime_api.h"

namespace emulator {

/*! \brief Whether a copy may be done; the checked build tells why not. */
cudaError_t check_copy(void* to, const void* from, size_t size, cudaMemcpyKind kind);
/*! \brief Does it, in a stream. */
cudaError_t copy_now(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                     cudaStream_t stream);
cudaError_t check_box(const cudaMemcpy3DParms& copy);
cudaError_t copy_box_now(const cudaMemcpy3DParms& copy, cudaStream_t stream);
/*! \brief The same for elements of 1, 2 or 4 bytes that get a value. */
cudaError_t check_fill(const cudaMemsetParams& params);
cudaError_t fill_now(const cudaMemsetParams& params, cudaStream_t stream);

}  // namespace emulator

#endif  // EMULATOR_COPY_H_

/*!
 * \file cudnn.cuh
 * \brief Calls a convolution of cuDNN, which cudnn.py has found and prepared.
 */
#ifndef DLSYS_BACKEND_CUDNN_CUH_
#define DLSYS_BACKEND_CUDNN_CUH_

#include <cuda_runtime.h>

#include <cstdint>

namespace dlsys {
namespace backend {

/*!
 * \brief out = convolution of a and b.
 * \param data out, a, b, and the workspace, if there is one.
 * \param n cudnnSetStream and the convolution's function; the handle; descriptors of a, b, the
 * convolution and out; the algorithm; bytes of the workspace.
 */
inline int cudnn(char* const* data, const int64_t* n, cudaStream_t on) {
  // All three kinds of convolution take what they take in the same order.
  typedef int (*Stream)(void*, cudaStream_t);
  typedef int (*Function)(void*, const void*, void*, const void*, void*, const void*, void*, int,
                          void*, size_t, const void*, void*, void*);
  const auto pointer = [n](int i) { return reinterpret_cast<void*>(n[i]); };
  const float one = 1, zero = 0;
  if (reinterpret_cast<Stream>(n[0])(pointer(2), on) != 0) return -1;
  const int failed = reinterpret_cast<Function>(n[1])(
      pointer(2), &one, pointer(3), data[1], pointer(4), data[2], pointer(5),
      static_cast<int>(n[7]), n[8] > 0 ? data[3] : nullptr, static_cast<size_t>(n[8]), &zero,
      pointer(6), data[0]);
  return failed == 0 ? 0 : -1;
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_CUDNN_CUH_

/*!
 * \file launch.cuh
 * \brief Launches of kernels that may begin before the kernel before them has ended.
 *
 * A step is some hundred short kernels, one behind the other. Since Hopper a kernel's blocks may
 * come to the multiprocessors while the last blocks of the kernel before are still at work: they
 * then wait for its end in wait_for_predecessor, and not for their own launch behind it.
 */
#ifndef DLSYS_BACKEND_LAUNCH_CUH_
#define DLSYS_BACKEND_LAUNCH_CUH_

#include <cuda_runtime.h>

#include <cstddef>

namespace dlsys {
namespace backend {

/*! \brief What a kernel that launch_early may start does before it reads or writes memory: it lets
 * the next one come, and waits until the one before has ended, and all that it wrote is there. */
__device__ inline void wait_for_predecessor() {
#if !defined(__CUDA_EMULATOR__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/*! \brief Whether the GPU has such launches. */
inline bool launches_early() {
  int device, major;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major >= 9;
}

/*! \brief Launches a kernel that begins with wait_for_predecessor. */
template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t bytes,
                  cudaStream_t on, Arguments... arguments) {
#ifndef __CUDA_EMULATOR__
  static const bool is_early = launches_early();
  if (is_early) {
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    const cudaLaunchConfig_t how = {grid, block, bytes, on, &early, 1};
    cudaLaunchKernelEx(&how, kernel, arguments...);
    return;
  }
#endif
  kernel<<<grid, block, bytes, on>>>(arguments...);
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_LAUNCH_CUH_

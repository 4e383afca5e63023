/*!
 * \file launch_kernel.h
 * \brief cudaLaunchKernel: a launch of a kernel whose arguments are given by their addresses.
 *
 * The types of the arguments are those of the kernel's parameters, so the kernel has to be given
 * as it is. cuda_source/refusals.py takes away a cast to void* around its name.
 */
#ifndef EMULATOR_LAUNCH_KERNEL_H_
#define EMULATOR_LAUNCH_KERNEL_H_

// It uses what C++17 has, which compilers take in older standards too, with a warning.
#pragma GCC system_header

#include <utility>

#include "emulator/launch.h"

namespace emulator {

/*! \brief Launches, and says what was wrong with it; an error of before stays where it is. */
cudaError_t launch_of_pointer(const LaunchSite& site, const Config& config, const CallData& data);

// The arguments are copied now: the launch may be captured, and done later.
template <typename... Args, size_t... I>
cudaError_t launch_pointer(void (*kernel)(Args...), index_sequence<I...>, const Config& config,
                           void** args, const LaunchSite& site) {
  typedef Call<ThreadOf<Args...>, NoBlocks> Each;
  const Each call{
      ThreadOf<Args...>(kernel, *static_cast<const remove_reference_t<Args>*>(args[I])...), {}};
  const void* const pointers[] = {
      pointer_of(*static_cast<const remove_reference_t<Args>*>(args[I]))..., nullptr};
  return launch_of_pointer(site, config,
                           {&Each::run, nullptr, &call, sizeof call, pointers, sizeof...(I)});
}

}  // namespace emulator

template <typename... Args>
cudaError_t cudaLaunchKernel(void (*kernel)(Args...), dim3 grid, dim3 block, void** args,
                             size_t shared = 0, cudaStream_t stream = 0,
                             const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::CallSite site(file, line);
  return emulator::launch_pointer(kernel, emulator::index_sequence_for<Args...>(),
                                  {grid, block, shared, stream}, args,
                                  {"of cudaLaunchKernel", file, line});
}

#if defined(__has_attribute) && __has_attribute(error)
#define EMULATOR_REFUSED(text) __attribute__((error(text)))
#else
#define EMULATOR_REFUSED(text)
#endif
EMULATOR_REFUSED(
    "the emulated GPU needs to see which kernel cudaLaunchKernel starts; hint: give the kernel "
    "itself, not a void pointer, or write kernel<<<grid, block>>>(arguments)")
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args,
                             size_t shared = 0, cudaStream_t stream = 0);

#endif  // EMULATOR_LAUNCH_KERNEL_H_

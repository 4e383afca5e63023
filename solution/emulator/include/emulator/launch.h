/*!
 * \file launch.h
 * \brief What `kernel<<<grid, block, shared, stream>>>(arguments)` becomes.
 *
 * rewrite.py turns it into
 *
 *   ::emulator::emulator_kernel(EMULATOR_NAME(kernel), [&](auto... emulator_args) {
 *     kernel(emulator_args...);
 *   }, [&](auto emulator_block, auto... emulator_args)
 *       -> decltype(kernel(emulator_block, emulator_args...)) {
 *     return kernel(emulator_block, emulator_args...);
 *   })(grid, block, shared, stream)(arguments)
 *
 * so that the configuration and the arguments are evaluated once, by the caller, while the
 * kernel is called by its name, once a thread: default arguments, conversions, overloads and
 * deduced template arguments work as in any other call. The second function can be called only
 * for a kernel that loops.py gave a version for whole blocks.
 */
#ifndef EMULATOR_LAUNCH_H_
#define EMULATOR_LAUNCH_H_

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "cuda_runtime_api.h"
#include "emulator/language.h"
#include "emulator/loops.h"

// The text of a kernel's name, after the macros in it.
#define EMULATOR_TEXT(...) #__VA_ARGS__
#define EMULATOR_NAME(...) EMULATOR_TEXT(__VA_ARGS__)

namespace emulator {

/*! \brief The four values between <<< and >>>. */
struct Config {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};

/*! \brief Calls the kernel for the current thread; `call` holds the kernel and its arguments. */
typedef void (*ThreadFunction)(const void* call);

/*! \brief Runs a whole block. */
typedef void (*BlockFunction)(const void* call, const BlockIndex& index);

/*!
 * \brief Runs all threads of a grid. An error is left for cudaGetLastError.
 *
 * `block_function`, if there is one, does the same as `function` for all threads of a block.
 */
void launch(const char* name, const Config& config, ThreadFunction function,
            BlockFunction block_function, const void* call);

/*! \brief In the place of a function that runs a block, where there is none. */
struct NoBlocks {};

template <typename Enable, typename Blocks, typename... Args>
struct RunsBlocks : std::false_type {};
template <typename Blocks, typename... Args>
struct RunsBlocks<std::enable_if_t<std::invoke_result_t<const Blocks&, BlockIndex, Args...>::value>,
                  Blocks, Args...> : std::true_type {};

/*! \brief A kernel with its arguments: what each thread, or block, calls. */
template <typename Body, typename Blocks, typename... Args>
struct Call {
  const Body& body;
  const Blocks& blocks;
  std::tuple<Args...> args;

  static void run(const void* call) {
    const Call* self = static_cast<const Call*>(call);
    std::apply(self->body, self->args);
  }
  static void run_block(const void* call, const BlockIndex& index) {
    const Call* self = static_cast<const Call*>(call);
    std::apply([&](const Args&... args) { self->blocks(index, args...); }, self->args);
  }
  static constexpr BlockFunction block_function() {
    if constexpr (RunsBlocks<void, Blocks, Args...>::value)
      return &run_block;
    else
      return nullptr;
  }
};

/*! \brief A kernel with its configuration, waiting for the arguments. */
template <typename Body, typename Blocks>
struct Configured {
  const char* name;
  const Body& body;
  const Blocks& blocks;
  Config config;

  // By value, so that arrays and functions become pointers, as in a call.
  template <typename... Args>
  void operator()(Args... args) const {
    typedef Call<Body, Blocks, Args...> ThisCall;
    const ThisCall call{body, blocks, std::tuple<Args...>(args...)};
    launch(name, config, &ThisCall::run, ThisCall::block_function(), &call);
  }
};

/*! \brief A kernel, waiting for its configuration. */
template <typename Body, typename Blocks>
struct Kernel {
  const char* name;
  Body body;
  Blocks blocks;

  Configured<Body, Blocks> operator()(dim3 grid, dim3 block, size_t shared = 0,
                                      cudaStream_t stream = nullptr) const {
    return {name, body, blocks, {grid, block, shared, stream}};
  }
};

// Not `kernel`, which is what a macro that launches may call its argument.
template <typename Body, typename Blocks = NoBlocks>
Kernel<Body, Blocks> emulator_kernel(const char* name, Body body, Blocks blocks = Blocks()) {
  return {name, body, blocks};
}

}  // namespace emulator

#endif  // EMULATOR_LAUNCH_H_

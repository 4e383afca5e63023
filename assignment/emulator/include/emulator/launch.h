/*!
 * \file launch.h
 * \brief What `kernel<<<grid, block, shared, stream>>>(arguments)` becomes.
 *
 * rewrite.py turns it into
 *
 *   ::emulator::emulator_kernel(EMULATOR_NAME(kernel), [&](auto... emulator_args) {
 *     kernel(emulator_args...);
 *   })(grid, block, shared, stream)(arguments)
 *
 * so that the configuration and the arguments are evaluated once, by the caller, while the
 * kernel is called by its name, once a thread: default arguments, conversions, overloads and
 * deduced template arguments work as in any other call.
 */
#ifndef EMULATOR_LAUNCH_H_
#define EMULATOR_LAUNCH_H_

#include <cstddef>
#include <tuple>

#include "cuda_runtime_api.h"
#include "emulator/language.h"

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

/*! \brief Runs all threads of a grid. An error is left for cudaGetLastError. */
void launch(const char* name, const Config& config, ThreadFunction function, const void* call);

/*! \brief A kernel with its arguments: what each thread calls. */
template <typename Body, typename... Args>
struct Call {
  const Body& body;
  std::tuple<Args...> args;

  static void run(const void* call) {
    const Call* self = static_cast<const Call*>(call);
    std::apply(self->body, self->args);
  }
};

/*! \brief A kernel with its configuration, waiting for the arguments. */
template <typename Body>
struct Configured {
  const char* name;
  const Body& body;
  Config config;

  // By value, so that arrays and functions become pointers, as in a call.
  template <typename... Args>
  void operator()(Args... args) const {
    const Call<Body, Args...> call{body, std::tuple<Args...>(args...)};
    launch(name, config, &Call<Body, Args...>::run, &call);
  }
};

/*! \brief A kernel, waiting for its configuration. */
template <typename Body>
struct Kernel {
  const char* name;
  Body body;

  Configured<Body> operator()(dim3 grid, dim3 block, size_t shared = 0,
                              cudaStream_t stream = nullptr) const {
    return {name, body, {grid, block, shared, stream}};
  }
};

// Not `kernel`, which is what a macro that launches may call its argument.
template <typename Body>
Kernel<Body> emulator_kernel(const char* name, Body body) {
  return {name, body};
}

}  // namespace emulator

#endif  // EMULATOR_LAUNCH_H_

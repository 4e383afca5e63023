/*!
 * \file launch.h
 * \brief What `kernel<<<grid, block, shared, stream>>>(arguments)` becomes.
 *
 * rewrite.py turns it into
 *
 *   ::emulator::emulator_kernel(EMULATOR_NAME(kernel), [=](auto... emulator_args) {
 *     kernel(::emulator::given(emulator_args)...);
 *   }, [=](auto emulator_block, auto... emulator_args)
 *       -> decltype(kernel(emulator_block, ::emulator::given(emulator_args)...)) {
 *     return kernel(emulator_block, ::emulator::given(emulator_args)...);
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
#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"
#include "emulator/language.h"
#include "emulator/loops.h"
#include "emulator/managed.h"
#include "emulator/parameters.h"
#include "emulator/site.h"

// The text of a kernel's name, after the macros in it, and its place.
#define EMULATOR_TEXT(...) #__VA_ARGS__
#define EMULATOR_NAME(...) \
  ::emulator::LaunchSite { EMULATOR_TEXT(__VA_ARGS__), __FILE__, __LINE__ }

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

/*! \brief A kernel with its arguments, as the runtime sees it. */
struct CallData {
  ThreadFunction function;
  BlockFunction block_function;  // does the same for all threads of a block; or null
  const void* call;
  size_t call_size;
  const void* const* pointers;  // the arguments that are pointers; null for the others
  size_t pointers_count;
};

/*! \brief Runs all threads of a grid. An error is left for cudaGetLastError. */
void launch(const LaunchSite& site, const Config& config, const CallData& data);

/*! \brief Has a launch end as refused before any of its threads has done anything. */
void refuse_launch();

/*! \brief Whether a block has more threads than its kernel's `__launch_bounds__` allow. */
EMULATOR_UNCHECKED inline bool are_too_many(unsigned bounds) {
  if (blockDim.x * blockDim.y * blockDim.z <= bounds) return false;
  refuse_launch();
  return true;
}

/*! \brief An argument if it is a pointer, else null. */
template <typename T>
const void* pointer_of(const T& value) {
  if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
    return const_cast<const void*>(static_cast<const volatile void*>(value));
  else
    return nullptr;
}

/*!
 * \brief An object that must not be copied like bytes, held by its address: the kernel's parameter
 * may be of another type, and a copy's destructor would do harm.
 */
template <typename T>
struct Held {
  T* object;
};

/*! \brief What a launch keeps of a variable. */
template <typename T>
decltype(auto) held(T&& variable) {
  typedef std::remove_reference_t<T> Value;
  if constexpr (std::is_class_v<Value> && !std::is_trivially_copyable_v<Value>)
    return Held<Value>{&variable};
  else if constexpr (std::is_lvalue_reference_v<T>)
    return static_cast<T>(variable);
  else
    return Value(variable);
}

/*! \brief What the kernel is called with. */
template <typename T>
T& given(T& argument) {
  return argument;
}
template <typename T>
T& given(Held<T>& argument) {
  return *argument.object;
}

/*! \brief In the place of a function that runs a block, where there is none. */
struct NoBlocks {};

// std::invoke_result and, below, std::tuple would do too; compiling them for each launch takes
// longer than compiling a small kernel.
template <typename Enable, typename Blocks, typename... Args>
struct RunsBlocks : std::false_type {};
template <typename Blocks, typename... Args>
struct RunsBlocks<std::enable_if_t<decltype(std::declval<const Blocks&>()(
                      std::declval<const BlockIndex&>(), std::declval<const Args&>()...))::value>,
                  Blocks, Args...> : std::true_type {};

/*! \brief A kernel with its arguments: what each thread, or block, calls. */
template <typename Thread, typename Block>
struct Call {
  Thread thread;
  Block block;

  EMULATOR_UNCHECKED static void run(const void* call) { static_cast<const Call*>(call)->thread(); }
  static void run_block(const void* call, const BlockIndex& index) {
    static_cast<const Call*>(call)->block(index);
  }
};

/*! \brief A kernel with its configuration, waiting for the arguments. */
template <typename Body, typename Blocks>
struct Configured {
  LaunchSite site;
  const Body& body;
  const Blocks& blocks;
  Config config;

  // By value, so that arrays and functions become pointers, as in a call.
  template <typename... Args>
  void operator()(Args... args) const {
    const void* const pointers[] = {pointer_of(args)..., nullptr};
    const auto thread = [body = body, args...]() EMULATOR_UNCHECKED { body(args...); };
    if constexpr (RunsBlocks<void, Blocks, Args...>::value) {
      const auto block = [blocks = blocks, args...](const BlockIndex& index) {
        blocks(index, args...);
      };
      const Call<decltype(thread), decltype(block)> call{thread, block};
      launch(site, config, call_data(call, &call.run_block, pointers, sizeof...(Args)));
    } else {
      const Call<decltype(thread), NoBlocks> call{thread, {}};
      launch(site, config, call_data(call, nullptr, pointers, sizeof...(Args)));
    }
  }

  template <typename Call>
  static CallData call_data(const Call& call, BlockFunction function, const void* const* pointers,
                            size_t count) {
    return {&Call::run, function, &call, sizeof call, pointers, count};
  }
};

/*! \brief A kernel, waiting for its configuration. */
template <typename Body, typename Blocks>
struct Kernel {
  LaunchSite site;
  Body body;
  Blocks blocks;

  Configured<Body, Blocks> operator()(dim3 grid, dim3 block, size_t shared = 0,
                                      cudaStream_t stream = nullptr) const {
    return {site, body, blocks, {grid, block, shared, stream}};
  }
};

// Not `kernel`, which is what a macro that launches may call its argument.
template <typename Body, typename Blocks = NoBlocks>
Kernel<Body, Blocks> emulator_kernel(LaunchSite site, Body body, Blocks blocks = Blocks()) {
  return {site, body, blocks};
}

}  // namespace emulator

#endif  // EMULATOR_LAUNCH_H_

/*!
 * \file launch.h
 * \brief What `kernel<<<grid, block, shared, stream>>>(arguments)` becomes.
 *
 * rewrite.py turns it into
 *
 *   (::emulator::Configuration(EMULATOR_NAME(kernel), grid, block, shared, stream),
 *    kernel(arguments))
 *
 * and has each kernel begin with
 *
 *   if (!emulator_in_kernel)
 *     return ::emulator::start(__func__, [=]() { kernel<T>(a, n); },
 *         [=](const auto& index) -> decltype(kernel<T>(KernelOf<7>(), index, a, n)) { ... }, a, n);
 *
 * so that the host calls the kernel once, like any function: overloads, default arguments,
 * conversions and deduced template arguments are the compiler's. What it was called with, each
 * thread is given. The second function can be called only for a kernel that block_loops/loops.py
 * gave a version for whole blocks.
 */
#ifndef EMULATOR_LAUNCH_H_
#define EMULATOR_LAUNCH_H_

// It uses what C++17 has, which compilers take in older standards too, with a warning.
#pragma GCC system_header

#include <cstddef>
#include <tuple>
#include <utility>

#include "cuda_runtime_api.h"
#include "emulator/language.h"
#include "emulator/loops.h"
#include "emulator/managed.h"
#include "emulator/parameters.h"
#include "emulator/site.h"
#include "emulator/type_traits.h"

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

/*! \brief Runs whole blocks. */
typedef void (*BlockFunction)(const void* call, BlockRun* blocks);

/*! \brief A kernel with its arguments, as the runtime sees it. */
struct CallData {
  ThreadFunction function;
  BlockFunction block_function;  // does the same for all threads of some blocks; or null
  const void* call;
  size_t call_size;
  const void* const* pointers;  // the arguments that are pointers; null for the others
  size_t pointers_count;
  // If the block function refers to arguments outside of `call`: where they are, their sizes, and
  // where in `call` the block function's own part is.
  const void* const* arguments = nullptr;
  const size_t* sizes = nullptr;
  size_t block_offset = 0, block_size = 0;
};

/*!
 * \brief Runs all threads of a grid. An error is left for cudaGetLastError.
 * \tparam size part of its name, so that kernels compiled with headers in which the struct has
 * another size find no such function, instead of one that reads what they did not write.
 */
template <size_t size = sizeof(CallData)>
void launch(const LaunchSite& site, const Config& config, const CallData& data);

/*! \brief Has a launch end as refused before any of its threads has done anything. */
void refuse_launch();

/*! \brief Whether a block has more threads than its kernel's `__launch_bounds__` allow. */
EMULATOR_UNCHECKED inline bool are_too_many(unsigned bounds) {
  if (blockDim.x * blockDim.y * blockDim.z <= bounds) return false;
  refuse_launch();
  return true;
}

/*! \brief The first of the numbers that `__launch_bounds__` has. */
constexpr unsigned first_of(unsigned threads, unsigned = 0, unsigned = 0) { return threads; }

/*! \brief An argument if it is a pointer, else null. */
template <typename T>
const void* pointer_of(const T& value) {
  if constexpr (std::is_pointer<T>::value && !std::is_function<remove_pointer_t<T>>::value)
    return const_cast<const void*>(static_cast<const volatile void*>(value));
  else
    return nullptr;
}

/*! \brief A parameter's type, without what is no part of the function's type. */
template <typename T>
struct BareType {
  typedef T type;
};
template <typename T>
struct BareType<T* __restrict__> {
  typedef T* type;
};
template <typename T>
using Bare = typename BareType<remove_cv_t<T>>::type;

/*!
 * \brief Whether objects of a type are passed as their bytes.
 *
 * Others are passed by the address of a copy, which the caller makes and destroys: so has it the
 * C++ ABI of x86-64 and of arm64.
 */
template <typename T>
constexpr bool is_passed_as_bytes =
    std::is_trivially_destructible<T>::value && std::is_trivially_move_constructible<T>::value &&
    (std::is_trivially_copy_constructible<T>::value || !std::is_copy_constructible<T>::value);

/*! \brief Whether they are surely passed by an address: a constructor or destructor is no plain
 * one. */
template <typename T>
constexpr bool is_passed_by_address =
    (std::is_destructible<T>::value && !std::is_trivially_destructible<T>::value) ||
    (std::is_copy_constructible<T>::value && !std::is_trivially_copy_constructible<T>::value) ||
    (std::is_move_constructible<T>::value && !std::is_trivially_move_constructible<T>::value);

/*! \brief An argument of a kernel, as it is brought to the device. */
template <typename T, bool as_bytes = is_passed_as_bytes<T>>
struct Argument {
  typedef T Passed;
  T value;

  EMULATOR_UNCHECKED Argument(T value) : value(value) {}
  EMULATOR_UNCHECKED const T& get() const { return value; }
};
// No thread copies or destroys such an object: it has its bytes, as on a GPU.
template <typename T>
struct Argument<T, false> {
  static_assert(is_passed_by_address<T>,
                "the emulated GPU can't pass this object; hint: let anybody copy it from a const");
  typedef T& Passed;
  alignas(T) unsigned char bytes[sizeof(T)];

  EMULATOR_UNCHECKED Argument(const T& value) {
    __builtin_memcpy(bytes, static_cast<const void*>(&value), sizeof(T));
  }
  EMULATOR_UNCHECKED T& get() { return *reinterpret_cast<T*>(bytes); }
};

/*! \brief What a thread of a kernel calls, and the arguments that it copies. */
template <typename... Parameters>
class ThreadOf {
 public:
  static constexpr bool as_bytes = (... && is_passed_as_bytes<Parameters>);

  template <typename... Values>
  ThreadOf(void (*kernel)(Parameters...), const Values&... values)
      : kernel_(kernel), arguments_(values...) {}
  EMULATOR_UNCHECKED void operator()() const { call(index_sequence_for<Parameters...>()); }

 private:
  typedef std::tuple<Argument<Parameters>...> Arguments;

  template <size_t... I>
  EMULATOR_UNCHECKED void call(index_sequence<I...>) const {
    conditional_t<as_bytes, const Arguments&, Arguments> mine = arguments_;
    reinterpret_cast<void (*)(typename Argument<Parameters>::Passed...)>(kernel_)(
        std::get<I>(mine).get()...);
  }

  void (*const kernel_)(Parameters...);
  const Arguments arguments_;
};

/*! \brief Whether every argument of a kernel may be copied anywhere. */
template <typename Thread>
constexpr bool has_plain_arguments = true;
template <typename... Parameters>
constexpr bool has_plain_arguments<ThreadOf<Parameters...>> = ThreadOf<Parameters...>::as_bytes;

/*! \brief Whether a kernel's block function refers to its arguments, and has no copies of them:
 * see OF_ANY in cuda_source/kernel_starts.py. */
template <typename Thread>
constexpr bool refers_to_arguments = false;
template <typename... Parameters>
constexpr bool refers_to_arguments<ThreadOf<Parameters...>> = true;

/*! \brief In the place of a function that runs a block, where there is none. */
struct NoBlocks {};

// std::invoke_result would do too; compiling it for each kernel takes longer.
template <typename Enable, typename Blocks>
struct RunsBlocks : std::false_type {};
template <typename Blocks>
struct RunsBlocks<
    enable_if_t<decltype(std::declval<const Blocks&>()(std::declval<const BlockIndex&>()))::value>,
    Blocks> : std::true_type {};

/*! \brief A kernel with its arguments: what each thread, or block, calls. */
template <typename Thread, typename Block>
struct Call {
  Thread thread;
  Block block;

  EMULATOR_UNCHECKED static void run(const void* call) { static_cast<const Call*>(call)->thread(); }
  // Inlined into the loop over blocks, large kernels would become a tenth slower.
  __attribute__((noinline)) static void run_block(const void* call, const BlockIndex& index) {
    static_cast<const Call*>(call)->block(index);
  }
  static void run_blocks(const void* call, BlockRun* blocks) {
    typedef decltype(std::declval<const Block&>()(blocks->index)) Kind;
    if constexpr (Kind::is_flat) {
      blocks->take_all();
      if (blocks->index.together > 1) {
        run_block(call, blocks->index);
        return blocks->leave_all();
      }
    }
    do run_block(call, blocks->index);
    while (blocks->go_on());
  }
};

/*! \brief A launch, until the kernel that it calls takes it. */
class Configuration {
 public:
  Configuration(LaunchSite site, dim3 grid, dim3 block, size_t shared = 0,
                cudaStream_t stream = nullptr);
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;
  ~Configuration();

  /*! \brief The launch whose arguments were computed last, which it takes; null if none waits. */
  static const Configuration* take();

  const LaunchSite site;
  const Config config;

 private:
  Configuration* const outer_;
  const int exceptions_;
  bool is_taken_;
};

/*! \brief Launches a kernel that the host called, if it did so by <<<>>>. */
template <typename Thread, typename Block, typename... Args>
void start(const char* kernel, Thread&& thread, Block&& block, const Args&... args) {
  const Configuration* const taken = Configuration::take();
  if (taken == nullptr) return emulator_called_directly(kernel);
  const void* const pointers[] = {pointer_of(args)..., nullptr};
  if constexpr (has_plain_arguments<Thread> && RunsBlocks<void, Block>::value) {
    typedef Call<Thread, Block> Both;
    const Both call{std::move(thread), std::move(block)};
    CallData data{&Both::run, &Both::run_blocks, &call, sizeof call, pointers, sizeof...(Args)};
    const void* const arguments[] = {__builtin_addressof(args)..., nullptr};
    const size_t sizes[] = {sizeof(Args)..., 0};
    if constexpr (refers_to_arguments<Thread>) {
      data.arguments = arguments;
      data.sizes = sizes;
      data.block_offset = static_cast<size_t>(reinterpret_cast<const char*>(&call.block) -
                                              reinterpret_cast<const char*>(&call));
      data.block_size = sizeof call.block;
    }
    launch(taken->site, taken->config, data);
  } else {
    typedef Call<Thread, NoBlocks> Each;
    const Each call{std::move(thread), {}};
    launch(taken->site, taken->config,
           {&Each::run, nullptr, &call, sizeof call, pointers, sizeof...(Args)});
  }
}

}  // namespace emulator

#endif  // EMULATOR_LAUNCH_H_

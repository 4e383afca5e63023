/*!
 * \file language.h
 * \brief The words that CUDA adds to C++, for a plain C++ compiler.
 *
 * What a macro cannot do, `kernel<<<...>>>` and `__shared__`, rewrite.py does.
 */
#ifndef EMULATOR_LANGUAGE_H_
#define EMULATOR_LANGUAGE_H_

#include "emulator/vector_types.h"

#define __CUDA_EMULATOR__ 1

#define __maxnreg__(...)
#define __builtin_align__(n) __align__(n)
#ifndef EMULATOR_REWRITES  // rewrite.py must see them
#define __global__
#define __device__
#define __host__
#define __constant__
#ifdef __ELF__
#define __managed__ __attribute__((section("emulator_managed")))  // see emulator/managed.h
#else
#define __managed__
#endif
#define __grid_constant__
#define __shared__ thread_local  // only where rewrite.py does not understand it
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// Nothing, since libstdc++ says __attribute__((__noinline__)), where a macro would be expanded.
#define __noinline__
#define __align__(n) __attribute__((aligned(n)))
#endif

// In a library that is loaded late, a thread_local variable costs a function call at each use.
// The small ones that every kernel reads are put where a single instruction finds them.
#ifdef __linux__
#define EMULATOR_FAST_TLS __attribute__((tls_model("initial-exec")))
#else
#define EMULATOR_FAST_TLS
#endif

// Constant for kernels. The runtime, which is built with EMULATOR_RUNTIME, sets them whenever it
// goes on with another thread.
#ifdef EMULATOR_RUNTIME
#define EMULATOR_CONST
#else
#define EMULATOR_CONST const
#endif

extern "C" {
extern __thread EMULATOR_CONST uint3 threadIdx EMULATOR_FAST_TLS;
extern __thread EMULATOR_CONST uint3 blockIdx EMULATOR_FAST_TLS;
extern __thread EMULATOR_CONST dim3 blockDim EMULATOR_FAST_TLS;
extern __thread EMULATOR_CONST dim3 gridDim EMULATOR_FAST_TLS;
/*! \brief Whether this CPU thread runs a kernel. */
extern __thread EMULATOR_CONST bool emulator_in_kernel EMULATOR_FAST_TLS;
/*! \brief The same, for no constant: its name says why a compiler refuses one. */
inline bool emulator_differs_between_host_and_device() { return emulator_in_kernel; }
#ifdef __clang__
#pragma clang diagnostic ignored "-Winvalid-constexpr"  // a function that asks that may run
#endif
/*! \brief Says that a kernel was called like a function, and leaves that error. */
void emulator_called_directly(const char* kernel);
}

// A function of which the checked build sees nothing.
#ifdef EMULATOR_CHECKED
#define EMULATOR_UNCHECKED \
  __attribute__((no_sanitize("thread"), no_sanitize("bounds"), no_sanitize("alignment")))
#else
#define EMULATOR_UNCHECKED
#endif

// The checked build sees the compiler's own loads and stores, but no calls: they are made to call
// the hooks. Compilers make such calls of their own, so the assembler gives them the name too.
#if defined(EMULATOR_CHECKED) && defined(__SANITIZE_THREAD__)
#define EMULATOR_HOOKS_CALLS
extern "C" void* memcpy(void*, const void*, size_t) noexcept __asm__("emulator_memcpy");
extern "C" void* memmove(void*, const void*, size_t) noexcept __asm__("emulator_memmove");
extern "C" void* memset(void*, int, size_t) noexcept __asm__("emulator_memset");
#elif defined(EMULATOR_CHECKED) && defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EMULATOR_HOOKS_CALLS
#endif
#endif
#if defined(EMULATOR_HOOKS_CALLS) && defined(__linux__)
asm(".set memcpy, emulator_memcpy\n.set memmove, emulator_memmove\n.set memset, emulator_memset");
#endif

constexpr int warpSize = 32;

#endif  // EMULATOR_LANGUAGE_H_

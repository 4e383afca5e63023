/*!
 * \file context.h
 * \brief Switching between stacks: the one thing that C++ has no words for.
 */
#ifndef EMULATOR_CONTEXT_H_
#define EMULATOR_CONTEXT_H_

#include <cstddef>

#if defined(__x86_64__) || defined(__aarch64__)
#define EMULATOR_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif

namespace emulator {

/*! \brief Where a suspended computation goes on. */
struct Context {
#ifdef EMULATOR_OWN_SWITCH
  void* stack_pointer;
#else
  ucontext_t state;
#endif
};

/*! \brief Prepares a context that calls `entry`, which must not return, on a stack of its own. */
void make_context(Context* context, void* stack, size_t size, void (*entry)());

/*! \brief Suspends the running computation into `from` and goes on with `to`. */
void switch_context(Context* from, const Context* to);

}  // namespace emulator

#endif  // EMULATOR_CONTEXT_H_

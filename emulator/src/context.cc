/*!
 * \file context.cc
 * \brief The context switch in assembly for x86-64 and arm64, else by ucontext.
 *
 * A switch is a function call, so only the registers that a called function must keep are
 * saved, on the stack that is left; then the stack pointer is exchanged. It ends in a return, to
 * whoever called for the other stack's switch. The CPU expects a return to the address of its
 * last call; since threads nearly always wait in the same place, that is the right one. (An
 * indirect jump instead takes twice the time: it leaves that expectation behind, and all returns
 * after it are predicted wrong.)
 */
#include "context.h"

#include <cstdint>

#ifdef EMULATOR_OWN_SWITCH

#ifdef __APPLE__
#define SYMBOL "_emulator_switch"
#define HIDDEN ".private_extern _emulator_switch\n"
#define TYPE ""
#else
#define SYMBOL "emulator_switch"
#define HIDDEN ".hidden emulator_switch\n"
#define TYPE ".type emulator_switch, %function\n"
#endif

extern "C" void emulator_switch(void** from, void* to);

#ifdef __x86_64__

asm(".text\n.globl " SYMBOL "\n" HIDDEN TYPE ".p2align 4\n" SYMBOL
    ":\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n");

// The six registers, the address to go to, and a return address of 0, where debuggers stop.
static const int kFrameWords = 8, kAddressWord = 6;

#else  // __aarch64__

asm(".text\n.globl " SYMBOL "\n" HIDDEN TYPE ".p2align 4\n" SYMBOL
    ":\n"
    "  sub sp, sp, #176\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n"
    "  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #176\n"
    "  ret\n");

static const int kFrameWords = 22, kAddressWord = 11;

#endif

namespace emulator {

void make_context(Context* context, void* stack, size_t size, void (*entry)()) {
  uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + size) & ~uintptr_t(15);
  uintptr_t* frame = reinterpret_cast<uintptr_t*>(top) - kFrameWords;
  for (int i = 0; i < kFrameWords; ++i) frame[i] = 0;
  frame[kAddressWord] = reinterpret_cast<uintptr_t>(entry);
  context->stack_pointer = frame;
}

void switch_context(Context* from, const Context* to) {
  emulator_switch(&from->stack_pointer, to->stack_pointer);
}

}  // namespace emulator

#else  // no assembly for this CPU

namespace emulator {

void make_context(Context* context, void* stack, size_t size, void (*entry)()) {
  getcontext(&context->state);
  context->state.uc_stack.ss_sp = stack;
  context->state.uc_stack.ss_size = size;
  context->state.uc_link = nullptr;
  makecontext(&context->state, entry, 0);
}

void switch_context(Context* from, const Context* to) { swapcontext(&from->state, &to->state); }

}  // namespace emulator

#endif

/*!
 * \file fibers.cc
 * \brief Stacks in memory of their own, each above a guard that may not be touched.
 */
#include "fibers.h"

#include <sys/mman.h>

namespace emulator {
namespace {

// For what is no variable of a kernel: the calls of the runtime, and those of the C library.
const size_t kCalls = 128 * 1024;

}  // namespace

Fibers::~Fibers() {
  for (Fiber* fiber : all_) {
    munmap(fiber->memory, fiber->guard + fiber->size);
    delete fiber;
  }
}

Fiber* Fibers::make() {
  const size_t guard = most_local_, size = most_local_ + kCalls;
  void* memory = mmap(nullptr, guard + size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // May fail when a process has very many stacks; then this one has no guard.
  mprotect(memory, guard, PROT_NONE);
  all_.push_back(new Fiber{Context(), static_cast<char*>(memory), guard, size});
  free_.reserve(all_.size());
  return all_.back();
}

Fiber* Fibers::take(void (*entry)()) {
  Fiber* fiber;
  if (free_.empty()) {
    fiber = make();
    if (fiber == nullptr) return nullptr;
  } else {
    fiber = free_.back();
    free_.pop_back();
  }
  // Stacks lie a multiple of a page apart. If all began at the same offset in their page, their
  // tops would fight for the same few sets of the CPU's cache.
  size_t stagger = (reinterpret_cast<uintptr_t>(fiber->memory) >> 12) * 192 % 4096;
  make_context(&fiber->context, fiber->memory + fiber->guard, fiber->size - stagger, entry);
  return fiber;
}

bool Fibers::is_guard(uintptr_t address) const {
  for (const Fiber* fiber : all_)
    if (address - reinterpret_cast<uintptr_t>(fiber->memory) < fiber->guard) return true;
  return false;
}

}  // namespace emulator

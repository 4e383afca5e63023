/*!
 * \file fibers.cc
 * \brief Stacks in memory of their own, each above a page that may not be touched.
 */
#include "fibers.h"

#include <sys/mman.h>
#include <unistd.h>

namespace emulator {
namespace {

size_t guard_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

size_t Fibers::whole_size() {
  static const size_t size = guard_size() + kStackSize;
  return size;
}

Fibers::~Fibers() {
  for (Fiber* fiber : all_) {
    munmap(fiber->memory, whole_size());
    delete fiber;
  }
}

Fiber* Fibers::make() {
  void* memory = mmap(nullptr, whole_size(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // May fail when a process has very many stacks; then this one has no guard.
  mprotect(memory, guard_size(), PROT_NONE);
  all_.push_back(new Fiber{Context(), static_cast<char*>(memory)});
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
  size_t stagger = (reinterpret_cast<uintptr_t>(fiber->memory) / guard_size()) * 192 % 4096;
  make_context(&fiber->context, fiber->memory + guard_size(), kStackSize - stagger, entry);
  return fiber;
}

bool Fibers::is_guard(uintptr_t address) const {
  for (const Fiber* fiber : all_)
    if (address - reinterpret_cast<uintptr_t>(fiber->memory) < guard_size()) return true;
  return false;
}

}  // namespace emulator

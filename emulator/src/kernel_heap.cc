/*!
 * \file kernel_heap.cc
 * \brief malloc and new in kernels: memory of the device, where host code does not come.
 *
 * CUDA sources call these functions, host code in them too, which gets memory of the host. The
 * checked build has others, in checked/heap.cc.
 */
#include "kernel_heap.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "arena.h"
#include "block.h"
#include "counts.h"
#include "variables.h"
#include "watchdog.h"

namespace emulator {
namespace {

// Pieces have sizes of powers of two; large ones are allocations of their own. Before what the
// kernel has stands a Head.
const size_t kAlignment = 16, kChunk = size_t(1) << 20;
const int kClasses = 18, kAlone = kClasses;  // 128 KB is the largest class

// A kernel may write over both where it must not: then they do not match what they say.
const uintptr_t kMark = 0x5eed0f0e0d0c0b0a;

struct Free {
  Free* next;
  uintptr_t mark;

  uintptr_t right() const { return reinterpret_cast<uintptr_t>(next) ^ kMark; }
};

struct Head {
  int kind;        // the piece's class
  unsigned above;  // how far above the piece's begin the kernel's memory begins
  uintptr_t mark;

  uintptr_t right() const {
    return reinterpret_cast<uintptr_t>(this) ^ kMark ^ above ^ static_cast<uintptr_t>(kind) << 48;
  }
};
static_assert(sizeof(Head) <= kAlignment, "it fits before what the kernel has");

std::mutex mutex;
Free* free_pieces[kClasses];
char *chunk = nullptr, *chunk_end = nullptr;

int class_of(size_t size) {
  int found = 5;
  while ((size_t(1) << found) < size && found < kClasses) ++found;
  return found;
}

// Null if the device has no more memory.
char* more_memory(size_t size) {
  void* more = nullptr;
  if (arena_allocate(&more, size) != cudaSuccess) return nullptr;
  add_to_count(Count::kAllocations, -1);  // not one of the program's
  return static_cast<char*>(more);
}

// Under the mutex.
char* cut(size_t size) {
  if (static_cast<size_t>(chunk_end - chunk) < size) {
    char* const more = more_memory(kChunk);
    if (more == nullptr) return nullptr;
    chunk = more, chunk_end = more + kChunk;
  }
  chunk += size;
  return chunk - size;
}

size_t size_of(int kind) { return size_t(1) << kind; }

// Under the mutex, where nothing may fault.
char* take_piece(int kind) {
  Free* const old = free_pieces[kind];
  if (old == nullptr) return cut(size_of(kind));
  free_pieces[kind] = old->mark == old->right() ? old->next : nullptr;
  return reinterpret_cast<char*>(old);
}

Head* head_of(void* ptr) { return reinterpret_cast<Head*>(static_cast<char*>(ptr) - kAlignment); }

void* allocate(size_t size, size_t alignment = kAlignment) {
  if (size > arena_capacity() || alignment > arena_capacity()) return nullptr;
  const int kind = class_of(size + alignment);
  const Unstoppable unstoppable;
  std::lock_guard<std::mutex> lock(mutex);
  char* const piece = kind == kAlone ? more_memory(size + alignment) : take_piece(kind);
  if (piece == nullptr) return nullptr;
  const uintptr_t lowest = reinterpret_cast<uintptr_t>(piece) + kAlignment;
  char* const ptr = piece + kAlignment + (0 - lowest) % alignment;
  Head* const head = head_of(ptr);
  head->kind = kind, head->above = static_cast<unsigned>(ptr - piece), head->mark = head->right();
  return std::memset(ptr, 0xff, size);  // NaN, as new memory is
}

void release(void* ptr) {
  Head* const head = head_of(ptr);
  if (head->mark != head->right()) return;  // freed before, or none of these; may end the kernel
  const Unstoppable unstoppable;
  std::lock_guard<std::mutex> lock(mutex);
  const int kind = head->kind;
  void* const place = static_cast<char*>(ptr) - head->above;
  head->mark = 0;
  if (kind == kAlone) arena_free(place);
  if (kind < 0 || kind >= kAlone) return;
  Free* const piece = static_cast<Free*>(place);
  piece->next = free_pieces[kind];
  piece->mark = piece->right();
  free_pieces[kind] = piece;
}

bool is_in_kernel() { return Block::running() != nullptr; }

}  // namespace

void forget_kernel_heap() {
  std::lock_guard<std::mutex> lock(mutex);
  for (Free*& first : free_pieces) first = nullptr;
  chunk = chunk_end = nullptr;
}

}  // namespace emulator

#ifndef EMULATOR_CHECKED
using emulator::is_in_kernel;

extern "C" {

void* emulator_malloc(size_t size) {
  return is_in_kernel() ? emulator::allocate(size) : std::malloc(size);
}

void* emulator_calloc(size_t count, size_t size) {
  if (!is_in_kernel()) return std::calloc(count, size);
  if (size != 0 && count > SIZE_MAX / size) return nullptr;
  void* const ptr = emulator::allocate(count * size);
  return ptr == nullptr ? nullptr : std::memset(ptr, 0, count * size);
}

void emulator_free(void* ptr) {
  if (is_in_kernel() && emulator::in_arena(ptr))
    emulator::release(ptr);
  else
    std::free(ptr);
}
}

// Instead of the C++ library's. A kernel's are those that its own code calls: while it runs, the
// runtime may need memory, too.

namespace {

// Null if there is none.
void* find(size_t size, size_t alignment, const void* place) {
  if (is_in_kernel() && emulator::is_code_of_kernels(place))
    return emulator::allocate(size, alignment);
  if (size == 0) size = 1;
  if (alignment <= emulator::kAlignment) return std::malloc(size);
  void* ptr = nullptr;
  return posix_memalign(&ptr, alignment, size) == 0 ? ptr : nullptr;
}

// In a kernel, too, null if there is none.
void* make(size_t size, size_t alignment, const void* place) {
  for (;;) {
    void* const ptr = find(size, alignment, place);
    if (ptr != nullptr || is_in_kernel()) return ptr;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

size_t number(std::align_val_t alignment) {
  return std::max(static_cast<size_t>(alignment), emulator::kAlignment);
}

}  // namespace

#define PLACE __builtin_return_address(0)

using std::align_val_t;
using Nothrow = const std::nothrow_t&;

void* operator new(size_t n) { return make(n, emulator::kAlignment, PLACE); }
void* operator new[](size_t n) { return make(n, emulator::kAlignment, PLACE); }
void* operator new(size_t n, align_val_t a) { return make(n, number(a), PLACE); }
void* operator new[](size_t n, align_val_t a) { return make(n, number(a), PLACE); }
void* operator new(size_t n, Nothrow) noexcept { return find(n, emulator::kAlignment, PLACE); }
void* operator new[](size_t n, Nothrow) noexcept { return find(n, emulator::kAlignment, PLACE); }
void* operator new(size_t n, align_val_t a, Nothrow) noexcept { return find(n, number(a), PLACE); }
void* operator new[](size_t n, align_val_t a, Nothrow) noexcept {
  return find(n, number(a), PLACE);
}
void operator delete(void* ptr) noexcept { emulator_free(ptr); }
void operator delete[](void* ptr) noexcept { emulator_free(ptr); }
void operator delete(void* ptr, size_t) noexcept { emulator_free(ptr); }
void operator delete[](void* ptr, size_t) noexcept { emulator_free(ptr); }
void operator delete(void* ptr, align_val_t) noexcept { emulator_free(ptr); }
void operator delete[](void* ptr, align_val_t) noexcept { emulator_free(ptr); }
void operator delete(void* ptr, size_t, align_val_t) noexcept { emulator_free(ptr); }
void operator delete[](void* ptr, size_t, align_val_t) noexcept { emulator_free(ptr); }
void operator delete(void* ptr, Nothrow) noexcept { emulator_free(ptr); }
void operator delete[](void* ptr, Nothrow) noexcept { emulator_free(ptr); }
#endif

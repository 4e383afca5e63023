/*!
 * \file kernel_heap.cc
 * \brief malloc and new in kernels: memory of the device, where host code does not come.
 *
 * CUDA sources call these functions, host code in them too, which gets memory of the host. The
 * checked build has others, in checked/heap.cc.
 */
#include "kernel_heap.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "arena.h"
#include "block.h"
#include "counts.h"
#include "variables.h"

namespace emulator {
namespace {

// Pieces have sizes of powers of two. Before each stands its class; kAlignment bytes do.
const size_t kAlignment = 16, kChunk = size_t(1) << 20;
const int kClasses = 48;

struct Free {
  Free* next;
};

std::mutex mutex;
Free* free_pieces[kClasses];
char *chunk = nullptr, *chunk_end = nullptr;

int class_of(size_t size) {
  int found = 5;
  while ((size_t(1) << found) < size && found < kClasses) ++found;
  return found;
}

// Under the mutex. Null if the device has no more memory.
char* cut(size_t size) {
  if (static_cast<size_t>(chunk_end - chunk) < size) {
    void* more = nullptr;
    const size_t wanted = size < kChunk ? kChunk : size;
    if (arena_allocate(&more, wanted) != cudaSuccess) return nullptr;
    add_to_count(Count::kAllocations, -1);  // not one of the program's
    chunk = static_cast<char*>(more), chunk_end = chunk + wanted;
  }
  chunk += size;
  return chunk - size;
}

void* allocate(size_t size) {
  const int kind = size < SIZE_MAX - kAlignment ? class_of(size + kAlignment) : kClasses;
  if (kind == kClasses) return nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  Free* const old = free_pieces[kind];
  char* const piece = old != nullptr ? reinterpret_cast<char*>(old) : cut(size_t(1) << kind);
  if (piece == nullptr) return nullptr;
  if (old != nullptr) free_pieces[kind] = old->next;
  std::memcpy(piece, &kind, sizeof kind);
  return std::memset(piece + kAlignment, 0xff, size);  // NaN, as new memory is
}

void release(void* ptr) {
  std::lock_guard<std::mutex> lock(mutex);
  Free* const piece = reinterpret_cast<Free*>(static_cast<char*>(ptr) - kAlignment);
  int kind;
  std::memcpy(&kind, piece, sizeof kind);
  if (kind < 0 || kind >= kClasses) return;  // a kernel wrote there
  piece->next = free_pieces[kind];
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

void* make(size_t size, const void* place) {
  if (is_in_kernel() && emulator::is_code_of_kernels(place)) return emulator::allocate(size);
  for (;;) {
    if (void* ptr = std::malloc(size > 0 ? size : 1)) return ptr;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

#define PLACE __builtin_return_address(0)

void* operator new(size_t size) { return make(size, PLACE); }
void* operator new[](size_t size) { return make(size, PLACE); }
void operator delete(void* ptr) noexcept { emulator_free(ptr); }
void operator delete[](void* ptr) noexcept { emulator_free(ptr); }
void operator delete(void* ptr, size_t) noexcept { emulator_free(ptr); }
void operator delete[](void* ptr, size_t) noexcept { emulator_free(ptr); }
#endif

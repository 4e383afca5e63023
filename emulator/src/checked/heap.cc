/*!
 * \file heap.cc
 * \brief malloc, new and their like in kernels.
 *
 * The memory is the host's own. What a kernel got is kept with its size, so that its threads may
 * use it, and no more than that.
 */
#define EMULATOR_RUNTIME
#include "heap.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "../memory.h"
#include "../watchdog.h"
#include "program.h"

namespace emulator {
namespace checked {

bool heap_in_use = false;

namespace {

const size_t kMostFreed = 1 << 16;  // after which they are forgotten
const size_t kNearby = 64;          // bytes from an allocation, in which an access misses it

struct Piece {
  size_t size;
  Site made, freed;
  bool live;
};

std::mutex mutex;
std::map<uintptr_t, Piece>& pieces() {
  static auto* all = new std::map<uintptr_t, Piece>;  // used until the very end
  return *all;
}
size_t freed_pieces = 0;
// The list allocates, too.
__thread bool is_busy = false;

struct Busy {
  Unstoppable unstoppable;
  Busy() { is_busy = true; }
  ~Busy() { is_busy = false; }
};

bool is_of_kernel(const void* place) {
  return state != nullptr && !is_busy && is_program_memory(reinterpret_cast<uintptr_t>(place));
}

// Under the mutex.
void forget_freed() {
  for (auto piece = pieces().begin(); piece != pieces().end();)
    piece = piece->second.live ? std::next(piece) : pieces().erase(piece);
  freed_pieces = 0;
}

void note_made(void* ptr, size_t size, const void* place) {
  if (ptr == nullptr || !is_of_kernel(place)) return;
  Busy busy;
  std::lock_guard<std::mutex> lock(mutex);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(ptr);
  // The system gives out freed memory again.
  auto old = pieces().upper_bound(begin);
  if (old != pieces().begin() && std::prev(old)->first + std::prev(old)->second.size > begin) --old;
  while (old != pieces().end() && old->first < begin + size) old = pieces().erase(old);
  Piece piece = {size, Site(), Site(), true};
  piece.made.address = place;
  pieces()[begin] = piece;
  heap_in_use = true;
}

void note_freed(void* ptr, const void* place) {
  if (!heap_in_use || ptr == nullptr || is_busy) return;
  Busy busy;
  std::lock_guard<std::mutex> lock(mutex);
  auto piece = pieces().find(reinterpret_cast<uintptr_t>(ptr));
  if (piece == pieces().end()) return;
  piece->second.live = false;
  piece->second.freed.address = place;
  if (++freed_pieces > kMostFreed) forget_freed();
}

// The piece that an address lies in, or just misses; null if there is none. Under the mutex.
const std::pair<const uintptr_t, Piece>* nearest(uintptr_t address) {
  auto after = pieces().upper_bound(address);
  if (after != pieces().begin()) {
    const auto& before = *std::prev(after);
    if (address - before.first < before.second.size + kNearby) return &before;
  }
  return after != pieces().end() && after->first - address <= kNearby ? &*after : nullptr;
}

}  // namespace

bool use_heap(uintptr_t address, size_t size, Access access, const void* place) {
  Busy busy;
  // Memory for both sides may lie next to what a kernel got, or the runtime, whose own code this
  // does not tell from a kernel's.
  uintptr_t begin = 0;
  size_t given = 0;
  if (find_given_out(address, 0, &begin, &given)) return false;
  std::lock_guard<std::mutex> lock(mutex);
  const auto* found = nearest(address);
  if (found == nullptr) return false;
  const Piece& piece = found->second;
  const uintptr_t offset = address - found->first;
  const bool inside = offset < piece.size && size <= piece.size - offset;
  if (inside && piece.live) return true;
  const bool write = access != Access::kRead;
  Kind outside = write ? Kind::kOutOfBoundsWriteGlobal : Kind::kOutOfBoundsReadGlobal;
  Finding finding = finding_here(inside ? Kind::kUseAfterFree : outside, place, size, write);
  finding.memory.known = true;
  finding.memory.size = piece.size;
  finding.memory.offset = static_cast<int64_t>(offset);
  finding.memory.allocated = piece.made;
  finding.memory.freed = piece.freed;
  add_finding(finding);
  return true;
}

}  // namespace checked
}  // namespace emulator

using emulator::checked::note_freed;
using emulator::checked::note_made;

#define PLACE __builtin_return_address(0)

extern "C" {

void* emulator_malloc(size_t size) {
  void* ptr = std::malloc(size);
  note_made(ptr, size, PLACE);
  return ptr;
}

void* emulator_calloc(size_t count, size_t size) {
  void* ptr = std::calloc(count, size);
  note_made(ptr, count * size, PLACE);
  return ptr;
}

void* emulator_realloc(void* old, size_t size) {
  note_freed(old, PLACE);
  void* ptr = std::realloc(old, size);
  note_made(ptr, size, PLACE);
  return ptr;
}

void emulator_free(void* ptr) {
  note_freed(ptr, PLACE);
  std::free(ptr);
}
}

// Instead of the C++ library's; what both give out may be freed by either.

namespace {

void* allocate(size_t size, const void* place) {
  void* ptr = std::malloc(size > 0 ? size : 1);
  note_made(ptr, size, place);
  return ptr;
}

void release(void* ptr, const void* place) {
  note_freed(ptr, place);
  std::free(ptr);
}

void* allocate_or_throw(size_t size, const void* place) {
  for (;;) {
    if (void* ptr = allocate(size, place)) return ptr;
    std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

void* operator new(size_t size) { return allocate_or_throw(size, PLACE); }
void* operator new[](size_t size) { return allocate_or_throw(size, PLACE); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size, PLACE); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size, PLACE); }
void operator delete(void* ptr) noexcept { release(ptr, PLACE); }
void operator delete[](void* ptr) noexcept { release(ptr, PLACE); }
void operator delete(void* ptr, size_t) noexcept { release(ptr, PLACE); }
void operator delete[](void* ptr, size_t) noexcept { release(ptr, PLACE); }
void operator delete(void* ptr, const std::nothrow_t&) noexcept { release(ptr, PLACE); }
void operator delete[](void* ptr, const std::nothrow_t&) noexcept { release(ptr, PLACE); }

/*!
 * \file locals.cc
 * \brief Pieces of memory that only grow in number, one set a CPU thread.
 */
#include "locals.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "arena.h"
#include "emulator/loops.h"
#include "watchdog.h"

namespace emulator {
namespace {

const size_t kPiece = 1 << 20;
const size_t kAlignment = 64;

struct Piece {
  std::unique_ptr<char[]> memory;
  size_t size;
};

// Pieces before `piece` are full; of that one, `used` bytes are taken.
struct Locals {
  std::vector<Piece> pieces;
  size_t piece = 0, used = 0;

  void* take(size_t size) {
    // Not all a multiple of a page apart, where they would fight for the same lines of the cache.
    size = (size + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
    while (piece < pieces.size() && used + size > pieces[piece].size) ++piece, used = 0;
    if (piece == pieces.size()) {
      const size_t room = size > kPiece ? size : kPiece;
      pieces.push_back({std::unique_ptr<char[]>(new char[room + kAlignment]), room});
    }
    const uintptr_t start = reinterpret_cast<uintptr_t>(pieces[piece].memory.get()) + used;
    used += size;
    return reinterpret_cast<void*>((start + kAlignment - 1) / kAlignment * kAlignment);
  }
};

// Null until this CPU thread takes some, so that those that never do are not asked for them.
__thread Locals* taken EMULATOR_FAST_TLS = nullptr;

Locals* locals() {
  static thread_local Locals mine;
  return taken = &mine;
}

// Allocations that this CPU thread's launch was found to use. Nobody frees them meanwhile.
const int kKnown = 8;
struct Range {
  uintptr_t begin, end;
};
thread_local Range known[kKnown];
thread_local int next_known = 0;

bool is_known_range(uintptr_t begin, size_t size) {
  for (const Range& range : known)
    if (range.begin <= begin && begin + size <= range.end) return true;
  Unstoppable unstoppable;  // by the lock of the arena
  Place place;
  if (!try_locate(begin, &place) || !place.live || begin + size > place.start + place.size)
    return false;
  known[next_known++ % kKnown] = {place.start, place.start + place.size};
  return true;
}

}  // namespace

void forget_ranges() {
  for (Range& range : known) range = {0, 0};
}

bool release_locals() {
  if (taken == nullptr || taken->piece + taken->used == 0) return false;
  taken->piece = taken->used = 0;
  return true;
}

}  // namespace emulator

void* emulator_take_locals(size_t size) {
  emulator::Locals* locals = emulator::taken;
  return (locals != nullptr ? locals : emulator::locals())->take(size);
}

bool emulator_is_readable(const void* begin, size_t size) {
  return emulator::is_known_range(reinterpret_cast<uintptr_t>(begin), size);
}

/*!
 * \file shadow.cc
 * \brief The regions of shadow memory, and changes of whole ranges.
 */
#include "shadow.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "../arena.h"

namespace emulator {
namespace checked {

Region device_region = {0, 0, nullptr};
Region program_region = {0, 0, nullptr};
unsigned char* settled_words = nullptr;
unsigned char settled_tag = 1;
uint64_t settled_version = 1;

namespace {

// The bytes of a word that lie in a range.
unsigned bytes_of(uintptr_t word, uintptr_t begin, uintptr_t end) {
  unsigned bytes = 15;
  if (word < begin) bytes &= 15u << (begin - word);
  if (word + 4 > end) bytes &= 15u >> (word + 4 - end);
  return bytes;
}

// Calls change(shadow word, bytes of it) for all words of a range.
template <typename Change>
void for_each_word(const Region& region, uintptr_t begin, size_t size, Change change) {
  const uintptr_t end = begin + size;
  Word* word = region.word(begin);
  for (uintptr_t address = begin & ~uintptr_t(3); address < end; address += 4, ++word)
    change(word, bytes_of(address, begin, end));
}

// Address space whose pages come, as zeros, when they are used.
void* reserve(size_t bytes) {
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "emulated GPU: no address space to check %zu bytes of memory\n", bytes);
    std::abort();
  }
#ifdef MADV_HUGEPAGE
  // A kernel that walks down the columns of a matrix would else miss the TLB at each access.
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace

Region make_region(uintptr_t begin, size_t size) {
  begin &= ~uintptr_t(3);
  return {begin, size, static_cast<Word*>(reserve((size / 4 + 2) * sizeof(Word)))};
}

void make_device_region(uintptr_t begin, size_t size) {
  device_region = make_region(begin, size);
  settled_words = static_cast<unsigned char*>(reserve(size / 4));
}

void unsettle_word(const Word* word) {
  if (!is_device_word(word)) return;
  unsigned char* tag = &settled_words[word - device_region.words];
  const unsigned char before = __atomic_exchange_n(tag, 0, __ATOMIC_SEQ_CST);
  if (before == settled_tag || before == kSettledForBlock)
    __atomic_fetch_add(&settled_version, 1, __ATOMIC_RELAXED);
}

void unsettle_words() {
  __atomic_fetch_add(&settled_version, 1, __ATOMIC_RELAXED);
  if (++settled_tag != kSettledForBlock) return;
  settled_tag = 1;
  if (settled_words == nullptr) return;
  munmap(settled_words, device_region.size / 4);
  settled_words = static_cast<unsigned char*>(reserve(device_region.size / 4));
}

void drop_region(Region* region) {
  if (region->words != nullptr) munmap(region->words, (region->size / 4 + 2) * sizeof(Word));
  *region = {0, 0, nullptr};
}

void set_allocated(const Region& region, uintptr_t begin, size_t size, bool has_value) {
  for_each_word(region, begin, size, [has_value](Word* word, unsigned bytes) {
    word->write = has_value ? bytes : 0;
    word->read = kAllocated | (bytes == 15 ? 0 : kPartly);
  });
}

void set_unallocated(const Region& region, uintptr_t begin, size_t size) {
  for_each_word(region, begin, size, [](Word* word, unsigned) { *word = {0, 0}; });
}

void set_value(const Region& region, uintptr_t begin, size_t size) {
  for_each_word(region, begin, size, [](Word* word, unsigned bytes) {
    word->write = Record(0, kNoPlace, false, 0, (word->write & 15) | bytes).bits();
    word->read &= kAllocated | kPartly;
  });
}

void add_value(const Region& region, uintptr_t begin, size_t size) {
  for_each_word(region, begin, size, [](Word* word, unsigned bytes) { word->write |= bytes; });
}

void copy_value(uintptr_t to, uintptr_t from, size_t size) {
  // Word by word where both lie alike; else byte by byte.
  for (size_t i = 0; i < size; ++i) {
    Word* source = device_region.word(from + i);
    if ((to & 3) == 0 && (from & 3) == 0 && size - i >= 4) {
      unsigned value = source->write & 15;
      device_region.word(to + i)->write = Record(0, kNoPlace, false, 0, value).bits();
      i += 3;
      continue;
    }
    Word* target = device_region.word(to + i);
    uint64_t bit = uint64_t(1) << ((to + i) & 3);
    bool has_value = source->write >> ((from + i) & 3) & 1;
    target->write = has_value ? target->write | bit : target->write & ~bit;
  }
}

size_t find_value(const Region& region, uintptr_t begin, size_t size) {
  for (size_t i = 0; i < size; ++i)
    if (region.word(begin + i)->write >> ((begin + i) & 3) & 1) return i;
  return size;
}

void forget_accesses() {
  auto forget = [](Word* word, unsigned) {
    word->write &= 15;
    word->read &= kAllocated | kPartly;
  };
  for_each_allocation(
      [&](uintptr_t begin, size_t size) { for_each_word(device_region, begin, size, forget); });
  if (program_region.size > 0)
    for_each_word(program_region, program_region.begin, program_region.size, forget);
}

}  // namespace checked
}  // namespace emulator

/*!
 * \file access.h
 * \brief What the compiler calls before every access of memory ends here.
 */
#ifndef EMULATOR_CHECKED_ACCESS_H_
#define EMULATOR_CHECKED_ACCESS_H_

#include "state.h"

namespace emulator {
namespace checked {

/*! \brief How memory is accessed. */
enum class Access { kRead, kWrite, kAtomic };

/*! \brief An access of any size that lies in a region; the parts that need words. */
void access_words(State* s, const Region& region, uintptr_t address, size_t size, Access access,
                  const void* place);
/*! \brief The same in memory of the host, which is allocated, and has values. */
void access_host_words(State* s, const Region& region, uintptr_t address, size_t size,
                       Access access, const void* place);
/*! \brief An access that lies in neither device nor shared memory. */
void access_elsewhere(State* s, uintptr_t address, size_t size, Access access, const void* place);
/*! \brief An access of host code. */
void access_of_host(uintptr_t address, size_t size, bool write, const void* place);
/*! \brief Whether host code was told of an address just now. */
bool is_told_of_host(uintptr_t address);
/*! \brief For EMULATOR_TRAFFIC. */
void count_access(State* s, uintptr_t address, size_t size, Access access, const void* place);
/*! \brief For EMULATOR_THREAD, and for advice. */
void watch_access(State* s, uintptr_t address, size_t size, bool write, const void* place);

/*! \brief Whether a read of a word, at an offset in device memory, tells nothing new. */
inline bool is_settled(uintptr_t offset) {
  return __atomic_load_n(&settled_words[offset >> 2], __ATOMIC_RELAXED) == settled_tag;
}

/*! \brief Marks a word as settled. */
inline void settle_word(const Word* word) {
  if (is_device_word(word))
    __atomic_store_n(&settled_words[word - device_region.words], settled_tag, __ATOMIC_RELAXED);
}

/*! \brief One word: true if nothing more has to be looked at. */
template <bool write>
inline bool is_fine(State* s, Word* word, unsigned bytes, const void* place) {
  uint64_t written = __atomic_load_n(&word->write, __ATOMIC_RELAXED);
  uint64_t read = __atomic_load_n(&word->read, __ATOMIC_RELAXED);
  if ((read & (kAllocated | kPartly)) != kAllocated) return false;
  Record last(written), reader(read);
  if (last.segment() >= unordered_first && last.who() != s->who) return false;
  if (write) {
    if (reader.segment() >= unordered_first && (reader.who() != s->who || reader.flag()))
      return false;
    if (unordered_first < launch_first && read_elsewhere(s, word).word == word) return false;
    if (bytes != 15) return false;  // the others' bytes may change at the same time
    __atomic_store_n(&word->write, Record(s->who, place_of(place), false, 15, 15).bits(),
                     __ATOMIC_RELAXED);
    return true;
  }
  if ((written & bytes) != bytes) return false;
  if (reader.segment() >= launch_first) {
    if (reader.who() == s->who) return true;
    if (read & kSeveral) {
      if ((written & 15) == 15 && last.segment() < unordered_first) settle_word(word);
      return true;
    }
    return reader.flag() && reader.segment() >= s->interval_first;
  }
  if (reader.segment() >= unordered_first) return false;
  __atomic_store_n(&word->read, Record(s->who, place_of(place), false, bytes, kAllocated).bits(),
                   __ATOMIC_RELAXED);
  return true;
}

/*! \brief The words of an access: true if nothing more has to be looked at. */
template <size_t size, bool write>
inline bool are_fine(State* s, const Region& region, uintptr_t address, const void* place) {
  const unsigned offset = address & 3;
  Word* word = region.word(address);
  if (size <= 4 && offset + size <= 4)
    return is_fine<write>(s, word, ((1u << (size & 7)) - 1) << offset, place);
  if (offset != 0) return false;
  for (size_t i = 0; i < size / 4; ++i)
    if (!is_fine<write>(s, word + i, 15, place)) return false;
  return true;
}

/*! \brief An access that nobody follows. Whatever is called is called last, so that what most
 * accesses need saves no registers. */
template <size_t size, bool write>
__attribute__((always_inline)) inline void access_memory(State* s, uintptr_t address,
                                                         const void* place) {
  const Access kind = write ? Access::kWrite : Access::kRead;
  if (device_region.has(address)) {
    if (!write && size == 4 && (address & 3) == 0 && is_settled(address - device_region.begin))
      return;
    if (are_fine<size, write>(s, device_region, address, place)) return;
    return access_words(s, device_region, address, size, kind, place);
  }
  if (s->owns(address)) return;
  if (!s->shared.has(address)) return access_elsewhere(s, address, size, kind, place);
  if (are_fine<size, write>(s, s->shared, address, place)) return;
  access_words(s, s->shared, address, size, kind, place);
}

template <size_t size, bool write>
__attribute__((noinline)) void access_followed(State* s, uintptr_t address, const void* place) {
  const Access kind = write ? Access::kWrite : Access::kRead;
  if (s->counts) return count_access(s, address, size, kind, place);
  if (s->pending) settle(s, address, write);
  if (s->watched) watch_access(s, address, size, write, place);
  access_memory<size, write>(s, address, place);
}

/*! \brief A plain access. */
template <size_t size, bool write>
__attribute__((always_inline)) inline void access(void* ptr, const void* place) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  State* s = state;
  if (s == nullptr) return access_of_host(address, size, write, place);
  s->last_place = place;
  if (s->pending | s->watched) return access_followed<size, write>(s, address, place);
  access_memory<size, write>(s, address, place);
}

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_ACCESS_H_

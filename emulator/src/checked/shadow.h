/*!
 * \file shadow.h
 * \brief What the checked build remembers of every 4 bytes of device memory.
 *
 * 16 bytes a word: who wrote it last, who read it, which of its bytes hold a value, and whether
 * it is allocated at all. There are three regions: device memory, the variables of the program
 * (`__device__`, `__constant__`), and the shared memory of each CPU thread's block.
 *
 * An access is known by the thread of its block, its place in the program, and its segment: a
 * number that grows with every start of a block, barrier and operation of a warp, see order.h.
 */
#ifndef EMULATOR_CHECKED_SHADOW_H_
#define EMULATOR_CHECKED_SHADOW_H_

#include <cstddef>
#include <cstdint>

namespace emulator {
namespace checked {

const int kSegmentBits = 24, kThreadBits = 10, kPlaceBits = 21;
const uint32_t kLastSegment = (1u << kSegmentBits) - 1;
const uint32_t kNoPlace = (1u << kPlaceBits) - 1;  // too far away, or not known

/*! \brief One access: segment, thread, place, flag, bytes of the word; and 4 bits more. */
class Record {
 public:
  constexpr Record() : bits_(0) {}
  explicit Record(uint64_t bits) : bits_(bits) {}
  Record(uint64_t who, uint32_t place, bool flag, unsigned bytes, unsigned low)
      : bits_(who << 30 | static_cast<uint64_t>(place) << 9 | static_cast<uint64_t>(flag) << 8 |
              bytes << 4 | low) {}

  uint64_t bits() const { return bits_; }
  /*! \brief Segment and thread in one number. */
  uint64_t who() const { return bits_ >> 30; }
  uint32_t segment() const { return static_cast<uint32_t>(bits_ >> 40); }
  unsigned thread() const { return bits_ >> 30 & 1023; }
  /*! \brief Offset of the instruction in the program's code. */
  uint32_t place() const { return bits_ >> 9 & kNoPlace; }
  /*! \brief Of a write: it was atomic. Of a read: other threads read too. */
  bool flag() const { return bits_ >> 8 & 1; }
  unsigned bytes() const { return bits_ >> 4 & 15; }
  /*! \brief Of a write: the bytes that hold a value. Of a read: kAllocated, kPartly, kSeveral. */
  unsigned low() const { return bits_ & 15; }

 private:
  uint64_t bits_;
};

const unsigned kAllocated = 1;
const unsigned kPartly = 2;   // the allocation ends within this word
const unsigned kSeveral = 4;  // several blocks of the launch read it

/*! \brief The shadow of a word. */
struct Word {
  uint64_t write, read;
};

// Found without a table of addresses: the hooks read these at each access.
#define EMULATOR_HIDDEN __attribute__((visibility("hidden")))

/*! \brief A range of addresses with a shadow. */
struct Region {
  uintptr_t begin;
  size_t size;
  Word* words;

  bool has(uintptr_t address) const { return address - begin < size; }
  Word* word(uintptr_t address) const { return words + ((address - begin) >> 2); }
};

/*! \brief Address space for the shadow of a range; pages come as they are used. */
Region make_region(uintptr_t begin, size_t size);
void drop_region(Region* region);

/*! \brief Device memory. */
extern Region device_region EMULATOR_HIDDEN;
/*!
 * \brief A byte for each word of device memory: what most reads need to know, in a sixteenth of
 * the shadow's cache lines.
 *
 * It is `settled_tag`, which changes with each launch, if the whole word is allocated and has a
 * value, nothing of this launch or before it that is not ordered wrote it, and several blocks read
 * it: then one more read tells nothing new. A write clears it.
 */
extern unsigned char* settled_words EMULATOR_HIDDEN;
extern unsigned char settled_tag EMULATOR_HIDDEN;
/*!
 * \brief The byte of a word that is settled for a block and until its next barrier: several
 * threads of it read the word.
 */
const unsigned char kSettledForBlock = 255;
/*! \brief Another number as soon as a word that was settled is not. Never 0. */
extern uint64_t settled_version EMULATOR_HIDDEN;
/*! \brief Whether this is the shadow of device memory. */
inline bool is_device_word(const Word* word) {
  return static_cast<size_t>(word - device_region.words) < device_region.size / 4;
}
/*! \brief Memory of the device begins here; its shadow is made. */
void make_device_region(uintptr_t begin, size_t size);
/*! \brief Who wrote a word, or who read it, has just changed. */
void unsettle_word(const Word* word);
/*! \brief Another launch begins: no word is settled. */
void unsettle_words();
/*! \brief The variables of the program that launches. */
extern Region program_region;

/*! \brief Makes memory allocated, without a value, or with one. */
void set_allocated(const Region& region, uintptr_t begin, size_t size, bool has_value);
void set_unallocated(const Region& region, uintptr_t begin, size_t size);
/*! \brief Whatever was there, by whomever: it has a value now, that nobody races with. */
void set_value(const Region& region, uintptr_t begin, size_t size);
/*! \brief The same, of memory whose accesses stay known. */
void add_value(const Region& region, uintptr_t begin, size_t size);
/*! \brief Copies which bytes have a value. */
void copy_value(uintptr_t to, uintptr_t from, size_t size);
/*! \brief The first byte with a value, or `size`. */
size_t find_value(const Region& region, uintptr_t begin, size_t size);
/*! \brief Forgets who accessed what, in all regions that are not shared memory. */
void forget_accesses();

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_SHADOW_H_

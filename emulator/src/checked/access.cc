/*!
 * \file access.cc
 * \brief Accesses that are not plainly right: who is in the way, and what is missing.
 */
#include "access.h"

#include <algorithm>
#include <cstring>

#include "../arena.h"
#include "../block.h"
#include "../memory.h"
#include "advice.h"
#include "fences.h"
#include "heap.h"
#include "program.h"
#include "streams.h"
#include "unwritten.h"
#include "waits.h"

namespace emulator {
namespace checked {
namespace {

Kind kind_in(const Region& region, const State* s, Kind global, Kind shared) {
  return region.begin == s->shared.begin ? shared : global;
}

void add(Finding finding, uintptr_t address) {
  finding.memory = memory_at(address);
  add_finding(finding);
}

Finding race(State* s, const Region& region, uintptr_t address, size_t size, Access access,
             const void* place, const Record& other, bool other_write) {
  Finding finding = finding_here(kind_in(region, s, Kind::kRaceGlobal, Kind::kRaceShared), place,
                                 size, access != Access::kRead);
  finding.has_other = true;
  finding.other_write = other_write;
  finding.other_at.address = address_of_place(other.place());
  finding.other = who_of(s, other);
  // Several threads read it; this one, whose record is kept, and others.
  if (other.thread() == static_cast<unsigned>(s->thread()) && !is_other_block(s, other))
    finding.other.known = false;
  finding.memory = memory_at(address);
  return finding;
}

// Both write: no harm is done if the value stays as it is, which the next access will see.
void defer(State* s, uintptr_t address, size_t size, const Finding& finding) {
  if (s->same_value.pending) return;
  s->pending = s->same_value.pending = true;
  s->same_value.address = address;
  s->same_value.size = std::min<size_t>(size, sizeof s->same_value.before);
  std::memcpy(s->same_value.before, reinterpret_cast<void*>(address), s->same_value.size);
  s->same_value.finding = finding;
}

struct Part {
  const Region& region;
  uintptr_t address;  // of the whole access
  size_t size;
  Access access;
  const void* place;
};

// The same in shared memory: a flag that is written as volatile, and read in a loop that waits.
bool synchronises_block(State* s, const Part& part, const Record& other, bool other_atomic) {
  if (!s->is_volatile) return false;
  if (part.access == Access::kWrite) return is_waiting_place(other.place());
  return other_atomic || is_volatile_place(other.place());
}

// Global memory by which threads tell each other something is no race: accesses that are atomic or
// volatile on both sides, and a flag that is written behind a fence, and read as volatile.
bool synchronises(State* s, const Part& part, const Record& other, bool other_atomic) {
  if (part.region.begin == s->shared.begin) return synchronises_block(s, part, other, other_atomic);
  const bool me = part.access == Access::kAtomic || s->is_volatile;
  const bool it = other_atomic || is_volatile_place(other.place());
  if (!me && !it) return false;
  const bool me_fenced = part.access == Access::kWrite && is_behind_fence(s->who);
  return (me || me_fenced) && (it || is_behind_fence(other.who()));
}

// Two words that a thread wrote as volatile, with no fence in between, and another reads: which of
// them comes first, nobody knows.
bool is_second_glimpse(State* s, const Part& part, const Record& last) {
  const Glimpse before = s->glimpse;
  s->glimpse = {last.who(), part.address, s->thread()};
  return before.writer == last.who() && before.address != part.address &&
         before.reader == s->thread();
}

void check_last_write(State* s, const Part& part, const Word* word, const Record& last,
                      unsigned bytes) {
  if (last.segment() < launch_first || (last.bytes() & bytes) == 0 || is_ordered(s, last)) return;
  bool atomic = last.flag();
  if (atomic && part.access == Access::kAtomic) return;
  bool reads = part.access == Access::kRead;
  if ((reads || atomic || part.access == Access::kAtomic) && synchronises(s, part, last, atomic)) {
    if (!reads || atomic || !is_second_glimpse(s, part, last) || is_waiting(s)) return;
  }
  if (part.access == Access::kWrite && !s->waited.empty() && has_waited(s, word, last)) return;
  Finding finding =
      race(s, part.region, part.address, part.size, part.access, part.place, last, true);
  if (part.access == Access::kWrite && !atomic) return defer(s, part.address, part.size, finding);
  if (part.access == Access::kRead && atomic) {
    // A loop around atomicCAS begins with such a read. Where it turns out that there is nothing to
    // do, no atomic follows; other threads show what the line is for.
    finding.kind = kind_in(part.region, s, Kind::kPlainReadGlobal, Kind::kPlainReadShared);
    if (!is_other_block(s, last)) s->plain_reads.push_back({part.address, s->thread(), finding});
    return;
  }
  add_finding(finding);
}

void check_readers(State* s, const Part& part, const Record& reader, unsigned bytes) {
  if (part.access != Access::kWrite) return;  // atomics after a plain read: see above
  if (reader.segment() < launch_first || (reader.bytes() & bytes) == 0) return;
  bool several = (reader.low() & kSeveral) && !has_fences();
  bool earlier = reader.segment() < s->interval_first && !is_other_block(s, reader);
  bool others = reader.flag() && !earlier && reader.who() == s->who;
  if (is_ordered(s, reader) && !several && !others) return;
  if (is_volatile_place(reader.place()) && synchronises(s, part, reader, false)) return;
  add_finding(
      race(s, part.region, part.address, part.size, part.access, part.place, reader, false));
}

void note_read(State* s, const Part& part, Word* word, const Record& reader, unsigned bytes) {
  bool same = reader.who() == s->who, of_launch = reader.segment() >= launch_first;
  // Nothing to add to: of this thread's block there are several readers, or of the grid's blocks.
  if ((same && reader.flag()) || (of_launch && (reader.low() & kSeveral))) return;
  // Of bytes that lie in one word and are read by different threads only the last are known.
  bool others = !same && of_launch && (reader.bytes() & bytes) != 0 && !is_ordered(s, reader);
  if (same) bytes |= reader.bytes();
  if (others) bytes &= reader.bytes();
  unsigned low = reader.low() & (kAllocated | kPartly);
  if (others && bytes == 15 && is_other_block(s, reader)) low |= kSeveral;
  word->read = Record(s->who, place_of(part.place), others, bytes, low).bits();
  if (!(low & kSeveral)) unsettle_word(word);  // nobody knows any more which block read it before
}

void note_write(State* s, const Part& part, Word* word, unsigned bytes) {
  // A plain write stays known below the atomics of its block: those of other blocks race with it.
  Record plain(word->write);
  if (part.access == Access::kAtomic && part.region.begin != s->shared.begin && !plain.flag() &&
      plain.segment() >= launch_first && plain.bytes() == bytes && !is_other_block(s, plain))
    return;
  // The bytes beside may get their values from another CPU thread at this moment.
  uint64_t old = __atomic_load_n(&word->write, __ATOMIC_RELAXED), now;
  do {
    Record before(old);
    unsigned by_me = before.who() == s->who ? before.bytes() | bytes : bytes;
    now = Record(s->who, place_of(part.place), part.access == Access::kAtomic, by_me,
                 before.low() | bytes)
              .bits();
  } while (!__atomic_compare_exchange_n(&word->write, &old, now, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  unsettle_word(word);
}

// Whether all bytes of the access are allocated; if not, that is all there is to say of it.
bool check_allocated(State* s, const Part& part) {
  bool inside = true;
  for (size_t i = 0; i < part.size; ++i)
    if (!(part.region.word(part.address + i)->read & kAllocated)) inside = false;
  bool partly = part.region.word(part.address + part.size - 1)->read & kPartly;
  if (inside && partly && part.region.begin == device_region.begin)
    inside = is_device_range(reinterpret_cast<void*>(part.address), part.size);
  if (inside) return true;
  Memory memory = memory_at(part.address);
  bool write = part.access != Access::kRead;
  Kind kind =
      write ? kind_in(part.region, s, Kind::kOutOfBoundsWriteGlobal, Kind::kOutOfBoundsWriteShared)
            : kind_in(part.region, s, Kind::kOutOfBoundsReadGlobal, Kind::kOutOfBoundsReadShared);
  bool was_freed = memory.freed.address != nullptr || memory.freed.file != nullptr;
  if (was_freed && memory.offset >= 0 && memory.offset < static_cast<int64_t>(memory.size))
    kind = Kind::kUseAfterFree;
  Finding finding = finding_here(kind, part.place, part.size, write);
  finding.memory = memory;
  s->overrun.pending = false;  // this is what became of it
  add_finding(finding);
  return false;
}

// A copy of a struct reads its padding too: so only what has no value at all counts.
void check_value(State* s, const Part& part) {
  if (part.access == Access::kWrite) return;
  for (size_t i = 0; i < part.size; ++i)
    if (part.region.word(part.address + i)->write >> ((part.address + i) & 3) & 1) return;
  add(finding_here(
          kind_in(part.region, s, Kind::kUninitialisedReadGlobal, Kind::kUninitialisedReadShared),
          part.place, part.size, false),
      part.address);
}

// The thread has read this word before, and at which place. Not told twice in a row.
void note_read_before(State* s, const Part& part) {
  const Record reader(part.region.word(part.address)->read);
  if (reader.who() != s->who || reader.place() == s->told_read) return;
  s->told_read = reader.place();
  const void* place = address_of_place(reader.place());
  add_finding(finding_here(Kind::kAtomicBehindARead, place, part.size, false));
}

// An atomic follows the thread's plain reads of the address.
void settle_plain_reads(State* s, const Part& part) {
  note_read_before(s, part);
  if (s->plain_reads.empty()) return;
  auto is_settled = [&](const PlainRead& read) {
    return read.address == part.address && read.thread == s->thread();
  };
  for (PlainRead& read : s->plain_reads) {
    if (!is_settled(read)) continue;
    read.finding.kind = Kind::kAtomicBehindARead;
    read.finding.has_other = false;
    read.finding.other_at = Site();
    add_finding(read.finding);
  }
  s->plain_reads.erase(std::remove_if(s->plain_reads.begin(), s->plain_reads.end(), is_settled),
                       s->plain_reads.end());
}

// Calls use(word, the bytes of it) for the words of an access.
template <typename Use>
void for_each_word(const Part& part, Use use) {
  const uintptr_t end = part.address + part.size;
  for (uintptr_t start = part.address & ~uintptr_t(3); start < end; start += 4) {
    unsigned bytes = 15;
    if (start < part.address) bytes &= 15u << (part.address - start);
    if (start + 4 > end) bytes &= 15u >> (start + 4 - end);
    use(part.region.word(start), bytes);
  }
}

void check_order(State* s, const Part& part, Word* word, unsigned bytes) {
  Record last(word->write), reader(word->read);
  check_last_write(s, part, word, last, bytes);
  check_readers(s, part, reader, bytes);
  if (s->is_volatile && is_waiting(s)) note_poll(s, word, place_of(part.place));
  if (part.access == Access::kRead)
    note_read(s, part, word, reader, bytes);
  else
    note_write(s, part, word, bytes);
}

}  // namespace

void access_words(State* s, const Region& region, uintptr_t address, size_t size, Access access,
                  const void* place) {
  Part part{region, address, size, access, place};
  if (!check_allocated(s, part)) return;
  check_value(s, part);
  if (access == Access::kAtomic) settle_plain_reads(s, part);
  for_each_word(part, [&](Word* word, unsigned bytes) {
    if (unordered_first < launch_first)
      check_other_streams(s, address, size, access, place, *word, bytes);
    check_order(s, part, word, bytes);
  });
}

void access_host_words(State* s, const Region& region, uintptr_t address, size_t size,
                       Access access, const void* place) {
  Part part{region, address, size, access, place};
  if (access == Access::kAtomic) settle_plain_reads(s, part);
  for_each_word(part, [&](Word* word, unsigned bytes) { check_order(s, part, word, bytes); });
}

void access_elsewhere(State* s, uintptr_t address, size_t size, Access access, const void* place) {
  if (s->owns(address)) return;
  if (program_region.has(address)) {
    if (is_host_variable(address) && !is_shared_host_memory(reinterpret_cast<void*>(address)))
      add(finding_here(Kind::kHostPointerInKernel, place, size, access != Access::kRead), address);
    return access_words(s, program_region, address, size, access, place);
  }
  if (heap_in_use && use_heap(address, size, access, place)) return;
  if (use_host_memory(s, address, size, access, place)) return;
  if (is_own_memory(address) || is_shared_host_memory(reinterpret_cast<void*>(address))) return;
  report_stray(s, address, size, access != Access::kRead, place);
}

// The last one that host code used, and the instruction that the system may stop it at.
static thread_local uintptr_t told_of_host = 0;

bool is_told_of_host(uintptr_t address) { return address - told_of_host < 64; }

void access_of_host(uintptr_t address, size_t size, bool write, const void* place) {
  if (host_memory_in_use) check_early_access(address, size, write, place);
  if (unwritten_in_use && !device_region.has(address)) check_unwritten(address, size, write, place);
  if (!device_region.has(address)) return;
  told_of_host = address;
  Finding finding;
  finding.kind = Kind::kDevicePointerOnHost;
  finding.at.address = place;
  finding.size = size;
  finding.write = write;
  add(finding, address);
}

static void trace(State* s, uintptr_t address, size_t size, bool write, const void* place) {
  Site at;
  at.address = place;
  bool of_device = device_region.has(address) || s->shared.has(address);
  if (!of_device && !program_region.has(address)) return;
  bool readable = !write && (device_region.has(address) || s->shared.has(address));
  write_trace(at, write, size, memory_at(address),
              readable ? reinterpret_cast<void*>(address) : nullptr);
}

void watch_access(State* s, uintptr_t address, size_t size, bool write, const void* place) {
  if (s->traced) trace(s, address, size, write, place);
  if (s->sampled) sample(s, address, size, write, place);
}

// An index past the end of an array: what it led to decides what it is called.
static void settle_overrun(State* s, uintptr_t address, bool write) {
  s->overrun.pending = false;
  Finding& finding = s->overrun.finding;
  if (device_region.has(address) && !(device_region.word(address)->read & kAllocated)) return;
  if (s->shared.has(address) && !(s->shared.word(address)->read & kAllocated)) return;
  if (address != 0) finding.memory = memory_at(address);
  finding.write = write;
  if (s->shared.has(address) &&
      leaves_shared(address, s->overrun.array, s->overrun.index, &finding.memory, &finding.size))
    finding.kind = write ? Kind::kOutOfBoundsWriteShared : Kind::kOutOfBoundsReadShared;
  if (is_program_memory(address))
    finding.kind = write ? Kind::kOutOfBoundsWriteGlobal : Kind::kOutOfBoundsReadConstant;
  add_finding(finding);
}

void settle(State* s, uintptr_t address, bool write) {
  s->pending = false;
  Block::running()->stop_if_wanted(s->last_place);
  if (s->same_value.pending) {
    s->same_value.pending = false;
    const void* now = reinterpret_cast<void*>(s->same_value.address);
    if (std::memcmp(now, s->same_value.before, s->same_value.size) != 0)
      add_finding(s->same_value.finding);
  }
  if (s->overrun.pending) settle_overrun(s, address, write);
}

void settle_interval(State* s, int thread) {
  if (s->pending) settle(s, 0);
  if (s->plain_reads.empty()) return;
  for (const PlainRead& read : s->plain_reads)
    if (read.thread == thread) add_finding(read.finding);
  s->plain_reads.erase(std::remove_if(s->plain_reads.begin(), s->plain_reads.end(),
                                      [&](const PlainRead& read) { return read.thread == thread; }),
                       s->plain_reads.end());
}

Finding finding_here(Kind kind, const void* place, size_t size, bool write) {
  Finding finding;
  finding.kind = kind;
  finding.at.address = place;
  finding.size = size;
  finding.write = write;
  if (state == nullptr) return finding;
  const Grid& grid = *state->grid;
  finding.kernel = grid.site.name;
  finding.launch.file = grid.site.file;
  finding.launch.line = grid.site.line;
  finding.grid = grid.config.grid;
  finding.block = grid.config.block;
  finding.who = who_now();
  finding.calls = state->running;
  return finding;
}

}  // namespace checked
}  // namespace emulator

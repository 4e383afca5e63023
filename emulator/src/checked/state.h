/*!
 * \file state.h
 * \brief What a CPU thread that runs blocks knows while it checks, and who is ordered with whom.
 *
 * Two accesses of the same word are a race if one of them writes and nothing orders them. What
 * orders: two launches; a barrier of the block in between; an operation of the warp in between in
 * which both took part; a fence, and then an atomic or a volatile read, see fences.h; a loop that
 * waits, see waits.h.
 */
#ifndef EMULATOR_CHECKED_STATE_H_
#define EMULATOR_CHECKED_STATE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../block.h"
#include "emulator/language.h"
#include "finding.h"
#include "shadow.h"

namespace emulator {
namespace checked {

/*! \brief A write by another thread to the same place: no race if it leaves the same value. */
struct SameValue {
  bool pending = false;
  uintptr_t address = 0;
  size_t size = 0;
  unsigned char before[16];
  Finding finding;
};

/*! \brief The size of an array's first dimension, and how many elements it has in all. */
struct ArrayType {
  size_t dimension = 0, count = 0;
};

/*! \brief An index past the end of an array, whose access comes next. */
struct Overrun {
  bool pending = false;
  ArrayType array;
  int64_t index = 0;
  Finding finding;
};

/*! \brief A plain read of what others update atomically: wrong unless an atomic follows. */
struct PlainRead {
  uintptr_t address;
  int thread;
  Finding finding;
};

/*! \brief Reads that were found settled: at each turn `width` words, `step` words further on. */
struct SettledReads {
  size_t first = 0, step = 0, turns = 0, width = 0;
  uint64_t version = 0;
  uint32_t interval = 0;  // of the block, if they are settled for no other
};

/*! \brief The last volatile read of what no fence has made visible. */
struct Glimpse {
  uint64_t writer = 0;  // as in Record
  uintptr_t address = 0;
  int reader = -1;
};

/*! \brief A thread in a loop that only waits: whether it is in one, and what it read last. */
struct Poll {
  bool is_on = false;
  const Word* words[2] = {};
};

/*! \brief What a thread waited for: a word, its last writer, and the thread, as in Record. */
struct Waited {
  const Word* word;
  uint64_t writer, waiter;
};

/*! \brief threadIdx and its like lie within so many bytes. */
const size_t kNear = 1024;

/*! \brief How a thread left the kernel. */
struct End {
  const void* place = nullptr;  // null if it has not, or nobody knows where
  bool at_end = false;          // at the last brace
};

/*! \brief A word that a launch has read, and before it a stream that nothing orders with it. */
struct ReadElsewhere {
  const Word* word = nullptr;
  uint64_t read = 0;  // the other's record
  uint32_t launch = 0;
};

/*! \brief One CPU thread's. What a block has of each thread is set for as many as it has. */
struct State {
  uint64_t who = 0;  // segment and thread, as in Record
  uint32_t interval_first = 0;
  uint32_t block = 0;  // its number in the grid
  bool pending = false, watched = false;
  bool follows = false, samples = false;  // the block
  bool counts = false;                    // the program: it checks no access, see traffic.h
  bool traced = false, sampled = false;   // the thread
  bool is_live = false;                   // the thread has not ended
  bool any_wait = false;                  // a thread of the block waited, and another went on
  uintptr_t stack = 0;
  size_t stack_size = 0;
  uintptr_t call = 0;  // the arguments of the launch
  size_t call_size = 0;
  uintptr_t indices = 0;  // somewhat below threadIdx and its like
  Region shared = {0, 0, nullptr};
  size_t static_shared = 0;  // bytes that the block uses so far
  uint32_t shared_of = 0;    // the launch whose shared variables are known, by its first segment
  const void* last_place = nullptr;
  uintptr_t stray = 0, misaligned = 0;  // addresses that were told, before they stop the kernel
  const Grid* grid = nullptr;
  Calls running;                   // of the running thread
  uint32_t met[kMaxThreads] = {};  // the segment of each thread's last operation of a warp
  const void* last_places[kMaxThreads] = {};  // where each thread that waits was last
  const void* barriers[kMaxThreads] = {};     // the barrier that each waits at, or null
  std::vector<const void*> places_met;        // of the barriers that threads of the block were at
  uint64_t barriers_met[kMaxThreads] = {};    // by each thread, as bits of those
  End ends[kMaxThreads];
  uint32_t fenced[kMaxThreads] = {};  // the segment that each thread's last fence began, or 0
  int fences[kMaxThreads] = {};       // how many fences each thread has had
  uint32_t acquired[kMaxThreads] =
      {};  // fences of segments up to this are known to each, see fences.h
  uint32_t acquired_by_all = 0, acquired_most = 0;
  bool any_fence = false;    // of this block
  bool is_volatile = false;  // the access under way
  uint32_t told_read = 0;    // the last place of a read that an atomic followed
  Glimpse glimpse;
  bool any_poll = false;  // a thread of this block was in a loop that only waits
  Poll polls[kMaxThreads];
  std::vector<Waited> waited;
  Calls calls[kMaxThreads];  // of threads that wait
  SameValue same_value;
  Overrun overrun;
  std::vector<PlainRead> plain_reads;
  ReadElsewhere read_elsewhere[128];
  SettledReads settled_reads[16];  // by the loops' places

  /*! \brief Whether an address is in what the kernel has of its own, or is handed. */
  bool owns(uintptr_t address) const {
    return address - indices < kNear || address - stack < stack_size || address - call < call_size;
  }
  int thread() const { return static_cast<int>(who & (kMaxThreads - 1)); }
};

/*! \brief Where that is kept of a word, or of another one in its place. */
inline ReadElsewhere& read_elsewhere(State* s, const Word* word) {
  return s->read_elsewhere[reinterpret_cast<uintptr_t>(word) / sizeof *word % 128];
}

/*! \brief The one of this CPU thread while it runs a kernel, else null. */
extern __thread State* state EMULATOR_FAST_TLS;
/*! \brief Segments below are of earlier launches. */
extern uint32_t launch_first EMULATOR_HIDDEN;
/*! \brief Segments below are of launches and copies that are done before this launch begins. */
extern uint32_t unordered_first EMULATOR_HIDDEN;

uint32_t next_segment();
/*! \brief Whether an address lies in the table of segments. */
bool is_owner(uintptr_t address);
/*! \brief Gives the block its next segment, from here on for all of its threads. */
void begin_interval(State* s);
void set_thread(State* s, int thread);
/*! \brief Whether something orders an access of this launch before what the thread does now. */
bool is_ordered(const State* s, const Record& record);
/*! \brief Whether the access was made by a block of this launch other than this one. */
bool is_other_block(const State* s, const Record& record);
/*! \brief The block of a segment. */
uint32_t block_of(uint32_t segment);
/*! \brief Begins a segment of the running thread alone, by a fence. */
uint32_t begin_fence_segment(State* s);
/*! \brief Whether a fence of the thread stands before an access, and no barrier in between. */
bool is_behind_fence(uint64_t who);
/*! \brief The last segment that any thread has begun. */
uint32_t segment_now();
void reset_order();

/*! \brief Who made an access. */
Who who_of(const State* s, const Record& record);
Who who_now();
/*! \brief The address of a place in the program's code. */
const void* address_of_place(uint32_t place);
extern uintptr_t code_begin EMULATOR_HIDDEN;
inline uint32_t place_of(const void* address) {
  uintptr_t place = reinterpret_cast<uintptr_t>(address) - code_begin;
  return place < kNoPlace ? static_cast<uint32_t>(place) : kNoPlace;
}

/*! \brief A finding about what the running thread does. */
Finding finding_here(Kind kind, const void* place, size_t size, bool write);
/*! \brief Where the program called the runtime. */
Site site_of_host();
/*! \brief What an address belongs to. */
Memory memory_at(uintptr_t address);

/*! \brief The buffer that an address far from all buffers may be meant for. */
Memory memory_missed(uintptr_t address);
/*! \brief Whether a pointer that the kernel was given is null. */
bool has_null_parameter();

// The slow parts of an access.
/*! \brief A kernel uses an address that is neither the device's nor its own. */
void report_stray(State* s, uintptr_t address, size_t size, bool write, const void* place);
/*! \brief Decides what waited for the access of an address, or for none (0). */
void settle(State* s, uintptr_t address, bool write = false);
/*! \brief Reports what waits for the end of the thread's interval. */
void settle_interval(State* s, int thread);

}  // namespace checked
}  // namespace emulator

#endif  // EMULATOR_CHECKED_STATE_H_

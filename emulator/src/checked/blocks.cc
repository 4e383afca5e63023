/*!
 * \file blocks.cc
 * \brief What the runtime tells of blocks, threads and barriers.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "../arena.h"
#include "../checked.h"
#include "../device.h"
#include "../shared.h"
#include "advice.h"
#include "emulator/shared.h"
#include "fences.h"
#include "program.h"
#include "threads.h"
#include "traffic.h"
#include "waits.h"

namespace emulator {
namespace checked {
namespace {

struct Variable {
  size_t size;
  std::string name;
};
std::mutex mutex;
std::map<size_t, Variable> variables;  // static shared ones, by their offset

// Those at file scope that this CPU thread's blocks use: nobody asks for them in each block.
thread_local std::vector<std::pair<char*, size_t>> used_by_all;
thread_local size_t dynamic_size = 0;

State* my_state(char* shared) {
  static thread_local State* mine = new State;
  uintptr_t begin = reinterpret_cast<uintptr_t>(shared);
  if (mine->shared.begin != begin) mine->shared = make_region(begin, shared_total());
  return mine;
}

// The block and the thread to follow: EMULATOR_THREAD=3,0,0,17,0,0, or 3,17.
struct Followed {
  bool any = false;
  uint3 block = {0, 0, 0}, thread = {0, 0, 0};

  Followed() {
    const char* wanted = std::getenv("EMULATOR_THREAD");
    unsigned v[6];
    int read = wanted == nullptr
                   ? 0
                   : std::sscanf(wanted, "%u,%u,%u,%u,%u,%u", v, v + 1, v + 2, v + 3, v + 4, v + 5);
    any = read == 2 || read == 6;
    if (read == 2) block.x = v[0], thread.x = v[1];
    if (read == 6) block = {v[0], v[1], v[2]}, thread = {v[3], v[4], v[5]};
  }
};

const Followed& followed() {
  static const Followed it;
  return it;
}

bool is_same(const uint3& a, const uint3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

bool is_followed(const uint3& block) { return followed().any && is_same(block, followed().block); }

Finding barrier_finding(Kind kind, const void* place) {
  return finding_here(kind, place, 0, false);
}

uint3 index_of(int thread, const dim3& size) {
  unsigned i = static_cast<unsigned>(thread);
  return {i % size.x, i / size.x % size.y, i / size.x / size.y};
}

// None of a thread that has ended.
const Calls& calls_of(int thread) {
  return thread == state->thread() ? state->running : state->calls[thread];
}

// A thread waits, and another of its block is or was last somewhere else.
Finding waiting_finding(Kind kind, int waiting, const void* place, int other,
                        const void* other_place) {
  Finding finding = finding_here(kind, place, 0, false);
  finding.calls = calls_of(waiting);
  finding.who.thread = index_of(waiting, blockDim);
  finding.has_other = true;
  finding.other_at.address = other_place;
  finding.other_calls = calls_of(other);
  finding.other.known = true;
  finding.other.block = blockIdx;
  finding.other.thread = index_of(other, blockDim);
  return finding;
}

Finding barrier_finding(Kind kind, int waiting, int other, const void* other_place) {
  return waiting_finding(kind, waiting, state->barriers[waiting], other, other_place);
}

// The bit of a barrier of this block; those that come after 63 others share one.
uint64_t bit_of(State* s, const void* place) {
  size_t i = 0;
  while (i < s->places_met.size() && s->places_met[i] != place) ++i;
  if (i == s->places_met.size() && i < 63) s->places_met.push_back(place);
  return uint64_t(1) << i;
}

// Who ended went round a barrier if it came to the kernel's last brace. If it returned before, it
// did so if it never was at this barrier and its line is behind it, as findings/reading.py can
// tell.
void check_ended(State* s, int waiting, const Block& block) {
  const uint64_t barrier = bit_of(s, s->barriers[waiting]);
  const End* last = nullptr;
  Finding finding;
  for (int i = 0; i < block.count(); ++i) {
    const End& end = s->ends[i];
    if (end.place == nullptr || !block.has_finished(i)) continue;
    if (!end.at_end && (s->barriers_met[i] & barrier) != 0) continue;
    if (last != nullptr && last->place == end.place && last->at_end == end.at_end) {
      ++finding.count;
      continue;
    }
    if (last != nullptr) add_finding(finding);
    finding = barrier_finding(end.at_end ? Kind::kBarrierPassedBy : Kind::kBarrierNotReached,
                              waiting, i, end.place);
    last = &end;
  }
  if (last != nullptr) add_finding(finding);
}

// Another block begins.
void forget_threads(State* s) {
  const dim3& size = s->grid->config.block;
  const int count = static_cast<int>(size.x * size.y * size.z);
  std::fill(s->met, s->met + count, 0);
  std::fill(s->ends, s->ends + count, End());
  std::fill(s->barriers, s->barriers + count, nullptr);
  std::fill(s->barriers_met, s->barriers_met + count, 0);
  s->places_met.clear();
  if (s->any_wait)
    for (Calls& calls : s->calls) calls.depth = 0;
  s->any_wait = s->is_live = false;
  s->running.depth = 0;
}

// Static shared variables of the launch before: each block makes its own.
void forget_shared(State* s) {
  if (s->shared_of == launch_first) return;
  s->shared_of = launch_first;
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto& [start, variable] : variables)
    set_unallocated(s->shared, s->shared.begin + start, variable.size);
}

// Whether a static shared variable is the running block's.
bool is_used(const State* s, size_t start) {
  const char* memory = reinterpret_cast<const char*>(s->shared.begin) + start;
  return *(reinterpret_cast<const uint64_t*>(memory) - 1) == emulator_block_number;
}

}  // namespace

void leave_waiting(State* s) {
  if (s->pending) settle(s, 0);
  const int thread = s->thread();
  s->last_places[thread] = s->last_place;
  s->calls[thread] = s->running;
  s->any_wait = true;
}

void watch(State* s, int thread) {
  s->traced = s->follows && is_same(threadIdx, followed().thread);
  s->sampled = is_sampled(s, thread);
  s->watched = s->traced || s->sampled || s->counts;
  if (s->counts) count_thread(thread);
}

bool find_shared(size_t offset, std::string* name, size_t* start, size_t* size) {
  std::lock_guard<std::mutex> lock(mutex);
  size_t dynamic = dynamic_shared_offset();
  if (offset + 4096 >= dynamic && dynamic_size > 0) {
    *name = "";
    *start = dynamic;
    *size = dynamic_size;
    return true;
  }
  auto after = variables.upper_bound(offset);
  if (after == variables.begin()) return false;
  auto before = std::prev(after);
  *name = before->second.name;
  *start = before->first;
  *size = before->second.size;
  return true;
}

bool leaves_shared(uintptr_t address, const ArrayType& array, int64_t index, Memory* memory,
                   size_t* element) {
  State* s = state;
  const int64_t offset = static_cast<int64_t>(address - s->shared.begin);
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto& [start, variable] : variables) {
    if (array.count == 0 || variable.size % array.count != 0 || !is_used(s, start)) continue;
    const int64_t row = static_cast<int64_t>(variable.size / array.dimension);
    const int64_t from = static_cast<int64_t>(start) + index * row;
    if (offset < from || offset >= from + row) continue;
    memory->space = "shared";
    memory->known = true;
    memory->name = variable.name;
    memory->size = variable.size;
    memory->offset = offset - static_cast<int64_t>(start);
    *element = variable.size / array.count;
    return true;
  }
  return false;
}

void block_begins(const Grid& grid, int64_t number, char* shared, size_t dynamic_shared) {
  State* s = my_state(shared);
  s->grid = &grid;
  s->call = reinterpret_cast<uintptr_t>(grid.call);
  s->call_size = grid.call_size;
  s->indices = reinterpret_cast<uintptr_t>(&threadIdx) - kNear / 2;
  s->follows = is_followed(blockIdx);
  s->block = static_cast<uint32_t>(number);
  s->samples = is_sampled(s, 0);
  s->counts = counts_traffic();
  begin_interval(s);
  begin_fences(s);
  begin_waits(s);
  forget_threads(s);
  s->last_place = nullptr;
  s->stray = s->misaligned = 0;
  s->static_shared = 0;
  s->plain_reads.clear();
  s->pending = s->same_value.pending = s->overrun.pending = false;
  forget_shared(s);
  uintptr_t dynamic = s->shared.begin + dynamic_shared_offset();
  if (dynamic_size > dynamic_shared) set_unallocated(s->shared, dynamic, dynamic_size);
  if (dynamic_shared > 0) set_allocated(s->shared, dynamic, dynamic_shared, false);
  for (const auto& [memory, size] : used_by_all) {
    std::memset(memory, 0xff, size);
    set_allocated(s->shared, reinterpret_cast<uintptr_t>(memory), size, false);
  }
  dynamic_size = dynamic_shared;
  state = s;
}

void block_ends() {
  state->counts ? count_block_end(*state->grid) : advise(state);
  state = nullptr;
}

void stack_is(const void* stack, size_t size) {
  state->stack = reinterpret_cast<uintptr_t>(stack);
  state->stack_size = size;
}

void thread_goes_on(int thread) {
  State* s = state;
  if (s->is_live) leave_waiting(s);
  s->is_live = true;
  s->last_place = s->last_places[thread];
  s->running = s->calls[thread];
  watch(s, thread);
  set_thread(s, thread);
}

void barrier_met(int thread, const void* place) {
  State* s = state;
  settle_interval(s, thread);
  s->barriers[thread] = place;
  s->barriers_met[thread] |= bit_of(s, place);
}

namespace {

// Whether threads that wait do so at the same barrier, if those of one warp or of different ones
// are compared; else that is told. `first` is one that waits.
bool are_together(State* s, const Block& block, int first, bool of_one_warp) {
  for (int i = first; i < block.count(); ++i) {
    if (s->barriers[i] == nullptr) continue;
    if (of_one_warp && i / kWarp != first / kWarp) first = i;
    if (s->barriers[i] == s->barriers[first]) continue;
    const Kind kind = of_one_warp ? Kind::kDifferentBarriers : Kind::kBarriersOfTwoWarps;
    add_finding(barrier_finding(kind, first, i, s->barriers[i]));
    return false;
  }
  return true;
}

}  // namespace

// All that have not ended wait, or have just come: are they at the same barrier? Where the lanes of
// a warp are not, nothing says what a GPU does; it counts the warps that come.
void barrier_released(const Block& block) {
  State* s = state;
  int first = 0;
  while (first < block.count() && s->barriers[first] == nullptr) ++first;
  if (first == block.count()) first = -1;
  if (first >= 0 && are_together(s, block, first, true)) are_together(s, block, first, false);
  if (first >= 0) check_ended(s, first, block);
  if (s->counts) count_barrier(block.count());
  std::fill(s->barriers, s->barriers + block.count(), nullptr);
  share_acquired(s);
  begin_interval(s);
  set_thread(s, s->thread());
}

void deadlocked(const Block& block) {
  State* s = state;
  int waiting = -1, lane = -1;
  for (int i = 0; i < block.count(); ++i) {
    if (block.has_finished(i)) continue;
    (s->barriers[i] == nullptr ? lane : waiting) = i;
  }
  if (lane < 0 && waiting < 0) return;
  const int who = lane >= 0 ? lane : waiting;
  Finding finding = barrier_finding(lane >= 0 ? Kind::kLanesMissing : Kind::kBarrierNotReached,
                                    lane >= 0 ? block.warp_place(lane) : s->barriers[waiting]);
  finding.calls = calls_of(who);
  finding.who.thread = index_of(who, blockDim);
  finding.detail = "no thread can go on";
  add_finding(finding);
}

void unnamed(unsigned mask, const void* place) {
  Finding finding = barrier_finding(Kind::kLaneNotNamed, place);
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  finding.detail = std::string("the mask is ") + text;
  add_finding(finding);
}

namespace {

// Lanes that name each other have to be at one and the same call. Where only the calls that led
// there differ, findings/reading.py tells whether the program made them.
void check_together(const Thread* first, int number, unsigned lanes) {
  const int one = __builtin_ctz(lanes);
  const Calls& calls = calls_of(number + one);
  for (int lane = one + 1; lane < kWarp; ++lane) {
    const bool together =
        first[lane].place == first[one].place && calls_of(number + lane).are(calls);
    if (!(lanes >> lane & 1) || together) continue;
    return add_finding(waiting_finding(Kind::kLanesMissing, number + one, first[one].place,
                                       number + lane, first[lane].place));
  }
}

std::string why_absent(int thread, int lane, bool named, int threads) {
  const std::string name = "lane " + std::to_string(lane);
  if (!named) return "the mask does not name " + name;
  if (thread / kWarp * kWarp + lane < threads) return name + " has returned";
  return name + ", in a block of " + std::to_string(threads) + " threads";
}

void shuffled_from_absent(int thread, const std::string& why, const void* place) {
  Finding finding = barrier_finding(Kind::kShuffleFromAnAbsentLane, place);
  finding.calls = calls_of(thread);
  finding.who.thread = index_of(thread, blockDim);
  finding.detail = why;
  add_finding(finding);
}

}  // namespace

// Who takes from a lane that the mask leaves out may know that, as at the end of a sum of few
// lanes: it is told only where no lane gets a value.
void shuffled(const Thread* first, int number, unsigned lanes, int threads) {
  check_together(first, number, lanes);
  if (state->counts) count_shuffle();
  unsigned absent = 0;  // those whose source is not there
  for (int lane = 0; lane < kWarp; ++lane)
    if (!(lanes >> (first[lane].source & (kWarp - 1)) & 1)) absent |= (lanes & 1u << lane);
  for (int lane = 0; lane < kWarp; ++lane) {
    const int source = first[lane].source & (kWarp - 1);
    const bool named = first[lane].mask >> source & 1;
    if ((absent >> lane & 1) && (named || absent == lanes))
      shuffled_from_absent(number + lane, why_absent(number + lane, source, named, threads),
                           first[lane].place);
  }
}

}  // namespace checked

void* checked_shared_variable(size_t* place, size_t size, size_t alignment, const char* name,
                              bool by_all) {
  size_t start = __atomic_load_n(place, __ATOMIC_RELAXED);
  if (start == 0) {
    start = reserve_shared(place, size, alignment);
    std::lock_guard<std::mutex> lock(checked::mutex);
    checked::variables[start] = {size, name};
  }
  char* memory = emulator_static_shared + start;
  uint64_t* block = reinterpret_cast<uint64_t*>(memory) - 1;
  if (*block != emulator_block_number) {
    *block = emulator_block_number;
    std::memset(memory, 0xff, size);
    checked::state->static_shared += size;
    if (by_all) checked::used_by_all.emplace_back(memory, size);
    checked::set_allocated(checked::state->shared, reinterpret_cast<uintptr_t>(memory), size,
                           false);
  }
  return memory;
}

}  // namespace emulator

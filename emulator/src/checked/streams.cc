/*!
 * \file streams.cc
 * \brief Vector clocks of the host, streams and events; who came too early.
 *
 * Only what CUDA promises counts as waiting, but where it promises nothing and devices wait all
 * the same (cudaFree, copies of pageable memory) no program is accused.
 */
#include "streams.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "../checked.h"
#include "host_regions.h"

namespace emulator {
namespace checked {

std::atomic<bool> host_memory_in_use(false);
uint32_t unordered_first = 1;

namespace {

// Of each stream, the number of the last operation that is waited for.
typedef std::vector<uint64_t> Clock;

struct Stream {
  bool blocking;
  Clock done;  // before the next operation of the stream begins
};

/*! \brief A launch or an asynchronous copy, until the host has waited for it. */
struct Operation {
  uint64_t number;
  size_t stream;
  uint32_t first, end;  // segments; 0 once they are used again
  const char* kernel;   // or null
  Site site;
  uint64_t graph;  // the launch of a graph that it is part of, or 0
};

// Older ones are taken for done.
const size_t kMaxOperations = 4096;

std::mutex mutex;
// Never deleted: the program's static objects may free memory at the end of the process.
auto& streams = *new std::vector<Stream>{{true, {}}, {true, {}}};  // the default ones come first
auto& numbers = *new std::map<cudaStream_t, size_t>;
auto& events = *new std::map<cudaEvent_t, Clock>;
auto& host = *new Clock;
auto& operations = *new std::deque<Operation>;
uint64_t last_number = 0;
thread_local const Clock* host_function = nullptr;  // what is done while one runs

thread_local uint32_t copy_segment = 0;  // of the copy under way; 0 if the host waits

// Launches of graphs: how many there were, and that of this thread, or 0.
std::atomic<uint64_t> graph_launches(0);
thread_local uint64_t graph_launch = 0;
thread_local int graphs_around = 0;  // it, and those that it is in

// The launch that runs.
uint64_t current = 0;
uint64_t current_graph = 0;
auto& unordered = *new std::vector<Operation>;

void join(Clock* clock, const Clock& other) {
  if (clock->size() < other.size()) clock->resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) (*clock)[i] = std::max((*clock)[i], other[i]);
}

bool is_done(const Clock& clock, const Operation& operation) {
  return operation.stream < clock.size() && operation.number <= clock[operation.stream];
}

size_t number_of(cudaStream_t stream) {
  if (stream == cudaStreamPerThread) return 1;
  auto found = numbers.find(stream);
  return found == numbers.end() ? 0 : found->second;
}

// The clock of a stream, for an operation that comes now.
Clock* clock_now(size_t number) {
  Stream& stream = streams[number];
  join(&stream.done, host);
  if (number > 0 && stream.blocking) join(&stream.done, streams[0].done);
  for (size_t i = 1; number == 0 && i < streams.size(); ++i)
    if (streams[i].blocking) join(&stream.done, streams[i].done);
  return &stream.done;
}

void host_waits_for(const Clock& clock) {
  join(&host, clock);
  while (!operations.empty() && is_done(host, operations.front())) operations.pop_front();
  if (operations.empty()) host_memory_in_use = false;
}

std::vector<Operation> not_done(const Clock& clock) {
  std::vector<Operation> found;
  if (streams.size() <= 2) return found;
  for (const Operation& operation : operations)
    if (!is_done(clock, operation)) found.push_back(operation);
  return found;
}

const Operation& begin(size_t stream, Clock* clock, uint32_t first, const char* kernel,
                       const Site& site) {
  if (!operations.empty() && operations.back().first >= first)  // they began again, see order.cc
    for (Operation& operation : operations) operation.first = operation.end = 0;
  if (!operations.empty() && operations.back().end != 0) operations.back().end = first;
  if (operations.size() >= kMaxOperations) operations.pop_front();
  operations.push_back({++last_number, stream, first, kLastSegment, kernel, site, graph_launch});
  if (clock->size() <= stream) clock->resize(stream + 1);
  (*clock)[stream] = last_number;
  return operations.back();
}

const Operation* find_segment(const std::vector<Operation>& all, uint32_t segment) {
  if (segment == kLastSegment) return nullptr;
  for (const Operation& operation : all)
    if (segment >= operation.first && segment < operation.end) return &operation;
  return nullptr;
}

const Operation* find_number(const std::vector<Operation>& all, uint64_t number) {
  auto less = [](const Operation& operation, uint64_t n) { return operation.number < n; };
  auto found = std::lower_bound(all.begin(), all.end(), number, less);
  return found != all.end() && found->number == number ? &*found : nullptr;
}

void report(Finding finding, const Operation& other, bool other_write, uintptr_t address) {
  const bool in_graph = other.graph != 0 && other.graph == current_graph;
  if (in_graph) finding.kind = Kind::kUnorderedNodes;
  finding.has_other = true;
  finding.other_at = other.site;
  finding.other_write = other_write;
  finding.memory = memory_at(address);
  Region region;
  if (find_region(address, &region)) {
    finding.memory.size = region.size;
    finding.memory.offset = static_cast<int64_t>(address - region.begin);
  }
  finding.detail = in_graph ? "no edges lead here from " : "nothing waits for ";
  const bool is_cublas = other.kernel != nullptr && std::strncmp(other.kernel, "cublas", 6) == 0;
  finding.detail += other.kernel != nullptr
                        ? (is_cublas ? "" : "kernel ") + std::string(other.kernel)
                        : std::string("the asynchronous copy");
  if (in_graph)
    finding.detail += ", another node of the same graph";
  else
    finding.detail += other.stream == 0 ? " in the default stream before" : " in its stream before";
  add_finding(finding);
}

// Calls look(address of a word, the bytes of it in the range) until it returns true.
template <typename Look>
void for_each_word(uintptr_t address, size_t size, Look look) {
  for (uintptr_t word = address & ~uintptr_t(3); word < address + size; word += 4) {
    unsigned bytes = 15;
    if (word < address) bytes &= 15u << (address - word);
    if (word + 4 > address + size) bytes &= 15u >> (word + 4 - address - size);
    if (look(word, bytes)) return;
  }
}

// The operation that a word's last write, or last read, is in the way of. `find` knows those
// that are not ordered, by what the records of this memory hold.
template <typename Find>
const Operation* in_the_way(const Word& word, unsigned bytes, Access access, Find find,
                            bool* other_write) {
  for (bool by_write : {true, false}) {
    if (!by_write && access == Access::kRead) break;
    uint64_t record = __atomic_load_n(by_write ? &word.write : &word.read, __ATOMIC_RELAXED);
    *other_write = by_write;
    if (const Operation* found = find(record, bytes, by_write)) return found;
  }
  return nullptr;
}

auto in_device_memory(const std::vector<Operation>& all, Access access) {
  return [&all, access](uint64_t bits, unsigned bytes, bool by_write) -> const Operation* {
    Record record(bits);
    if ((record.bytes() & bytes) == 0) return nullptr;
    if (by_write && record.flag() && access == Access::kAtomic) return nullptr;
    return find_segment(all, record.segment());
  };
}

auto in_host_memory(const std::vector<Operation>& all, Access access) {
  return [&all, access](uint64_t bits, unsigned bytes, bool) -> const Operation* {
    if ((bits & bytes) == 0 || ((bits & 16) != 0 && access == Access::kAtomic)) return nullptr;
    return find_number(all, bits >> 5);
  };
}

void note_number(Word* word, uint64_t number, unsigned bytes, Access access) {
  uint64_t* half = access == Access::kRead ? &word->read : &word->write;
  uint64_t before = __atomic_load_n(half, __ATOMIC_RELAXED);
  if (before >> 5 == number) bytes |= before & 15;
  uint64_t atomic = access == Access::kAtomic ? 16 : 0;
  __atomic_store_n(half, number << 5 | atomic | bytes, __ATOMIC_RELAXED);
}

// What a copy leaves in the shadow of device memory.
uint64_t record_of(uint32_t segment, unsigned bytes, uint64_t before) {
  uint64_t who = static_cast<uint64_t>(segment) << kThreadBits;
  return Record(who, kNoPlace, false, bytes, before & 15).bits();
}

/*! \brief One side of a copy: looks who is in the way, and leaves its number if there is one. */
struct Side {
  const std::vector<Operation>& unordered;
  const Operation* mine;  // null if the host waits
  bool write, reported = false;
  const char* function = nullptr;  // of cuBLAS, if it is none of a copy

  void use(const void* ptr, size_t size) {
    uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
    Region region;
    bool on_device = device_region.has(address);
    bool on_host = !on_device && find_region(address, &region);
    if (!on_host) region = on_device ? device_region : program_region;
    if (!region.has(address)) return;
    if (!on_host && unordered.empty() && (streams.size() <= 2 || mine == nullptr)) return;
    Access access = write ? Access::kWrite : Access::kRead;
    for_each_word(address, size, [&](uintptr_t at, unsigned bytes) {
      Word* word = region.word(at);
      bool other_write = false;
      const Operation* other =
          unordered.empty() ? nullptr
          : on_host
              ? in_the_way(*word, bytes, access, in_host_memory(unordered, access), &other_write)
              : in_the_way(*word, bytes, access, in_device_memory(unordered, access), &other_write);
      if (other != nullptr && !reported) {
        Finding finding = finding_here(Kind::kUnsynchronisedAccess, nullptr, size, write);
        finding.at = site_of_host();
        if (function != nullptr) finding.kernel = function;
        report(finding, *other, other_write, at);
        reported = true;
      }
      if (mine == nullptr) return reported;
      if (on_host) {
        note_number(word, mine->number, bytes, access);
        host_memory_in_use = true;
      } else if (on_device && !write && streams.size() > 2) {
        word->read = record_of(mine->first, bytes, word->read);
      }
      return false;
    });
  }
};

// Notes who has written to device memory.
void leave_segment(uint32_t segment, const Rows& to, size_t width, size_t height) {
  uintptr_t address = reinterpret_cast<uintptr_t>(to.ptr);
  if (streams.size() <= 2 || !device_region.has(address)) return;
  for (size_t row = 0; row < height; ++row)
    for_each_word(address + row * to.pitch, width, [segment](uintptr_t at, unsigned bytes) {
      Word* word = device_region.word(at);
      word->write = record_of(segment, bytes, word->write);
      return false;
    });
}

// A pageable buffer is filled, or done with, when an asynchronous copy returns.
bool is_pageable(const void* ptr) {
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  Region region;
  return !device_region.has(address) && !find_region(address, &region);
}

}  // namespace

void stream_created(cudaStream_t stream, bool blocking) {
  std::lock_guard<std::mutex> lock(mutex);
  numbers[stream] = streams.size();
  streams.push_back({blocking, {}});
}

void stream_waits_for_event(cudaStream_t stream, cudaEvent_t event) {
  std::lock_guard<std::mutex> lock(mutex);
  join(clock_now(number_of(stream)), events[event]);
}

void event_recorded(cudaEvent_t event, cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(mutex);
  events[event] = *clock_now(number_of(stream));
}

void event_forgotten(cudaEvent_t event) {
  std::lock_guard<std::mutex> lock(mutex);
  events.erase(event);
}

void host_waits_for_event(cudaEvent_t event) {
  std::lock_guard<std::mutex> lock(mutex);
  host_waits_for(events[event]);
}

void host_waits_for_stream(cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(mutex);
  host_waits_for(*clock_now(number_of(stream)));
}

void host_waits_for_all() {
  std::lock_guard<std::mutex> lock(mutex);
  for (const Stream& stream : streams) host_waits_for(stream.done);
}

// It runs when the stream has come there, whatever the host has waited for.
HostFunction::HostFunction(cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(mutex);
  host_function = new Clock(*clock_now(number_of(stream)));
}

HostFunction::~HostFunction() {
  delete host_function;
  host_function = nullptr;
}

GraphLaunch::GraphLaunch() {
  if (graphs_around++ == 0) graph_launch = ++graph_launches;
}

GraphLaunch::~GraphLaunch() {
  if (--graphs_around == 0) graph_launch = 0;
}

void kernel_submitted(const Grid& grid) {
  std::lock_guard<std::mutex> lock(mutex);
  size_t stream = number_of(grid.config.stream);
  Clock* clock = clock_now(stream);
  Site site;
  site.file = grid.site.file;
  site.line = grid.site.line;
  current = begin(stream, clock, launch_first, grid.site.name, site).number;
  current_graph = graph_launch;
  unordered = not_done(*clock);
  unordered_first = launch_first;
  for (const Operation& operation : unordered)
    if (operation.end != 0) unordered_first = std::min(unordered_first, operation.first);
}

void copy_submitted(const Rows& to, const Rows& from, size_t width, size_t height,
                    cudaStream_t stream, bool waits) {
  std::lock_guard<std::mutex> lock(mutex);
  size_t number = number_of(stream);
  Clock* clock = clock_now(number);
  // What the host waits for cannot be in the way later, and needs no number.
  if (from.ptr != nullptr) waits = waits || is_pageable(to.ptr);
  const Operation* mine =
      waits ? nullptr : &begin(number, clock, next_segment(), nullptr, site_of_host());
  copy_segment = waits ? 0 : mine->first;
  current_graph = graph_launch;
  const std::vector<Operation> others = not_done(*clock);
  Side target{others, mine, true}, source{others, mine, false};
  for (size_t row = 0; row < height; ++row) {
    if (from.ptr != nullptr)
      source.use(static_cast<const char*>(from.ptr) + row * from.pitch, width);
    target.use(static_cast<const char*>(to.ptr) + row * to.pitch, width);
  }
  if (waits) host_waits_for(*clock);
}

void copy_done(const Rows& to, size_t width, size_t height) {
  if (copy_segment != 0) leave_segment(copy_segment, to, width, height);
}

// All of it was done at once, so what it wrote can be noted before.
void cublas_submitted(const char* function, cudaStream_t stream, const std::vector<Lines>& read,
                      const Lines& written) {
  std::lock_guard<std::mutex> lock(mutex);
  if (streams.size() <= 2) return;
  const size_t number = number_of(stream);
  Clock* clock = clock_now(number);
  const Operation* mine = &begin(number, clock, next_segment(), function, site_of_host());
  current_graph = graph_launch;
  const std::vector<Operation> others = not_done(*clock);
  auto use = [&](const Lines& all, bool write) {
    Side side{others, mine, write, false, function};
    for (size_t i = 0; i < all.count; ++i)
      side.use(static_cast<const char*>(all.lines.ptr) + i * all.lines.pitch, all.width);
  };
  for (const Lines& each : read) use(each, false);
  use(written, true);
  leave_segment(mine->first, written.lines, written.width, written.count);
}

void check_early_access(uintptr_t address, size_t size, bool write, const void* place) {
  Region region;
  if (!find_region(address, &region) || !region.has(address + size - 1)) return;
  std::lock_guard<std::mutex> lock(mutex);
  const Clock& clock = host_function != nullptr ? *host_function : host;
  current_graph = graph_launch;
  auto find = [&](uint64_t bits, unsigned bytes, bool) -> const Operation* {
    uint64_t index = (bits >> 5) - (operations.empty() ? 0 : operations.front().number);
    if ((bits & bytes) == 0 || index >= operations.size()) return nullptr;
    return is_done(clock, operations[index]) ? nullptr : &operations[index];
  };
  for_each_word(address, size, [&](uintptr_t at, unsigned bytes) {
    bool other_write = false;
    const Operation* other = in_the_way(*region.word(at), bytes,
                                        write ? Access::kWrite : Access::kRead, find, &other_write);
    if (other == nullptr) return false;
    report(finding_here(Kind::kUnsynchronisedAccess, place, size, write), *other, other_write, at);
    return true;
  });
}

bool use_host_memory(State* s, uintptr_t address, size_t size, Access access, const void* place) {
  HostRegion both;
  if (!find_region(address, &both)) return false;
  const Region& region = both.operations;
  if (!region.has(address + size - 1)) return true;
  access_host_words(s, both.accesses, address, size, access, place);
  for_each_word(address, size, [&](uintptr_t at, unsigned bytes) {
    Word* word = region.word(at);
    bool other_write = false;
    const Operation* other =
        unordered.empty()
            ? nullptr
            : in_the_way(*word, bytes, access, in_host_memory(unordered, access), &other_write);
    if (other != nullptr)
      report(finding_here(Kind::kUnsynchronisedAccess, place, size, access != Access::kRead),
             *other, other_write, at);
    note_number(word, current, bytes, access);
    return false;
  });
  if (!host_memory_in_use) host_memory_in_use = true;
  return true;
}

// A word keeps one reader: of what is changed in place the launch's own takes the other's place.
void check_other_streams(State* s, uintptr_t address, size_t size, Access access, const void* place,
                         const Word& word, unsigned bytes) {
  bool other_write = false;
  const auto find = in_device_memory(unordered, access);
  const Operation* other = in_the_way(word, bytes, access, find, &other_write);
  ReadElsewhere& kept = read_elsewhere(s, &word);
  if (access == Access::kRead) {
    if (find(word.read, bytes, false) != nullptr) kept = {&word, word.read, launch_first};
  } else if (other == nullptr && kept.word == &word && kept.launch == launch_first) {
    other = find(kept.read, bytes, false);
  }
  if (other != nullptr)
    report(finding_here(Kind::kUnsynchronisedAccess, place, size, access != Access::kRead), *other,
           other_write, address);
}

}  // namespace checked
}  // namespace emulator

/*!
 * \file events.cc
 * \brief What the runtime tells: allocations, copies, launches.
 */
#include <map>
#include <mutex>

#include "../arena.h"
#include "../checked.h"
#include "../memory.h"
#include "emulator/site.h"
#include "ending.h"
#include "program.h"
#include "state.h"
#include "traffic.h"
#include "unwritten.h"

namespace emulator {
namespace checked {
namespace {

struct Allocation {
  size_t size;
  Site made, freed;
  bool live;
};

std::mutex mutex;
// Freed ones too. Used until the very end.
auto& allocations = *new std::map<uintptr_t, Allocation>;

thread_local int depth = 0;
thread_local Site here;
thread_local HostNote note;

// The allocation that an address is in, or nearest to. Under the mutex.
const std::pair<const uintptr_t, Allocation>* nearest(uintptr_t address) {
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return after == allocations.end() ? nullptr : &*after;
  auto before = std::prev(after);
  uintptr_t end = before->first + before->second.size;
  if (address >= end && after != allocations.end() && after->first - address < address - end)
    return &*after;
  return &*before;
}

// The name of the kernel's parameter that points into a buffer.
std::string name_of(uintptr_t start, size_t size) {
  if (state == nullptr) return "";
  const Grid& grid = *state->grid;
  for (size_t i = 0; i < grid.pointers_count; ++i) {
    uintptr_t pointer = reinterpret_cast<uintptr_t>(grid.pointers[i]);
    if (pointer >= start && pointer <= start + size) return parameter_name(grid.site.name, i);
  }
  return "";
}

Memory device_memory(uintptr_t address) {
  Memory memory;
  std::lock_guard<std::mutex> lock(mutex);
  const auto* found = nearest(address);
  if (found == nullptr) return memory;
  memory.known = true;
  memory.size = found->second.size;
  memory.offset = static_cast<int64_t>(address - found->first);
  memory.allocated = found->second.made;
  memory.freed = found->second.freed;
  memory.name = name_of(found->first, memory.size);
  return memory;
}

}  // namespace

HostCall::HostCall(const void* place, const char* function) {
  if (depth++ > 0) return;
  note = HostNote();
  note.function = function;
  if (here.file == nullptr) here.address = place;
}

HostCall::~HostCall() {
  if (--depth == 0) here = Site();
}

Site site_of_host() { return here; }

CallPlace call_place() { return {here.address, here.file, here.line}; }

AtPlace::AtPlace(const CallPlace& place) : before_(call_place()) {
  if (place.address != nullptr || place.file != nullptr)
    here = {place.address, place.file, place.line};
}

AtPlace::~AtPlace() { here = {before_.address, before_.file, before_.line}; }

HostNote* note_of_host() { return depth > 0 ? &note : nullptr; }

Finding finding_of_host(Kind kind) {
  Finding finding;
  finding.kind = kind;
  finding.at = here;
  return finding;
}

// What is wrong with the call is said by this: its error tells nothing more.
static void tell_of_host(const Finding& finding) {
  note.told = true;
  add_finding(finding);
}

// The pointer that the kernel was given and that is nearest to an address, or 0.
static uintptr_t nearest_pointer(uintptr_t address, bool only_device) {
  uintptr_t best = 0;
  if (state == nullptr) return best;
  for (size_t i = 0; i < state->grid->pointers_count; ++i) {
    uintptr_t pointer = reinterpret_cast<uintptr_t>(state->grid->pointers[i]);
    auto distance = [address](uintptr_t p) { return p < address ? address - p : p - address; };
    if (pointer == 0 || (only_device && !device_region.has(pointer))) continue;
    if (best == 0 || distance(pointer) < distance(best)) best = pointer;
  }
  return best;
}

Memory memory_missed(uintptr_t address) {
  const uintptr_t best = nearest_pointer(address, true);
  Memory memory = device_memory(best != 0 ? best : address);
  uintptr_t start = (best != 0 ? best : address) - static_cast<uintptr_t>(memory.offset);
  memory.offset = static_cast<int64_t>(address - start);
  return memory;
}

bool has_null_parameter() {
  for (size_t i = 0; i < state->grid->pointers_count; ++i)
    if (state->grid->pointers[i] == nullptr) return true;
  return false;
}

void report_leaks() {
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto& entry : allocations) {
    if (!entry.second.live) continue;
    Finding finding;
    finding.kind = Kind::kLeak;
    finding.at = entry.second.made;
    finding.memory.known = true;
    finding.memory.size = entry.second.size;
    finding.memory.allocated = entry.second.made;
    add_finding(finding);
  }
}

void arena_reserved(uintptr_t begin, size_t size) { make_device_region(begin, size); }

void allocated(uintptr_t start, size_t size) {
  set_allocated(device_region, start, size, false);
  std::lock_guard<std::mutex> lock(mutex);
  allocations[start] = {size, here, Site(), true};
}

void freed(uintptr_t start) {
  std::lock_guard<std::mutex> lock(mutex);
  Allocation& allocation = allocations[start];
  set_unallocated(device_region, start, allocation.size);
  allocation.live = false;
  allocation.freed = here;
}

void freed_wrongly(const void* ptr) {
  Finding finding = finding_of_host(Kind::kDoubleFree);
  finding.memory = memory_at(reinterpret_cast<uintptr_t>(ptr));
  tell_of_host(finding);
}

void copied(void* to, const void* from, size_t size) {
  uintptr_t target = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
  if (device_region.has(target) && device_region.has(source))
    return copy_value(target, source, size);
  if (device_region.has(target)) return set_value(device_region, target, size);
  if (!device_region.has(source)) return;
  if (find_value(device_region, source, size) < size) return note_unwritten(target, source, size);
  Finding finding = finding_of_host(Kind::kUninitialisedReadGlobal);
  finding.size = size;
  finding.memory = memory_at(source);
  finding.detail = "nothing of what is copied was ever written";
  tell_of_host(finding);
}

void written(void* ptr, size_t size) {
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  if (device_region.has(address)) set_value(device_region, address, size);
}

namespace {

bool check_span(const void* ptr, size_t span, bool write) {
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  if (!device_region.has(address) || is_device_range(ptr, span)) return true;
  Finding finding = finding_of_host(Kind::kCopyPastTheEnd);
  finding.size = span;
  finding.write = write;
  finding.memory = memory_at(address);
  if (finding.memory.freed.address != nullptr && finding.memory.offset >= 0)
    finding.kind = Kind::kUseAfterFree;
  tell_of_host(finding);
  return false;
}

}  // namespace

void refused_copy(const void* to, size_t to_span, const void* from, size_t from_span,
                  cudaMemcpyKind kind) {
  const bool fill = from == nullptr && from_span == 0;
  if (to == nullptr || (from == nullptr && !fill)) {
    note.detail =
        to == nullptr ? "; the target is a null pointer" : "; the source is a null pointer";
    return;
  }
  if (!check_span(to, to_span, true) || (!fill && !check_span(from, from_span, false))) return;
  static const char* const names[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                                      "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice"};
  Finding finding = finding_of_host(Kind::kCopyInTheWrongDirection);
  finding.size = to_span;
  auto side = [](const void* ptr) { return in_arena(ptr) ? "device" : "host"; };
  if (fill) {
    finding.detail = std::string("it fills memory of the ") + side(to);
  } else {
    finding.detail = std::string("it goes from the ") + side(from) + " to the " + side(to);
    if (kind >= 0 && kind < 4) finding.detail += std::string(", and says ") + names[kind];
  }
  tell_of_host(finding);
}

void used_by_cublas(const char* function, const char* operand, const void* ptr, size_t span,
                    bool valid) {
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  const bool on_device = device_region.has(address);
  if (valid && on_device) add_value(device_region, address, span);
  if (valid) return;  // perhaps managed memory, or a variable
  Finding finding =
      finding_of_host(on_device ? Kind::kOutOfBoundsReadGlobal : Kind::kHostPointerInKernel);
  finding.kernel = function;
  finding.size = span;
  finding.memory = memory_at(address);
  finding.detail = std::string("operand ") + operand + " takes " + std::to_string(span) + " bytes";
  tell_of_host(finding);
}

void launch_begins(const Grid& grid) {
  if (counts_traffic()) count_launch(grid);
  use_program(grid);
  reset_order();
  unsettle_words();
}

// How far outside an address may be to be meant for memory that host and device share.
static const size_t kNearlyInside = 4096;

Memory memory_at(uintptr_t address) {
  if (device_region.has(address)) return device_memory(address);
  Memory memory;
  if (state != nullptr && state->shared.has(address)) {
    size_t start = 0, offset = address - state->shared.begin;
    memory.space = "shared";
    memory.known = find_shared(offset, &memory.name, &start, &memory.size);
    memory.offset = static_cast<int64_t>(offset) - static_cast<int64_t>(start);
    return memory;
  }
  memory.known = true;
  uintptr_t begin = 0;
  size_t size = 0;
  if (find_given_out(address, kNearlyInside, &begin, &size)) {
    // The program's own memory may lie there, too: what was the kernel given?
    const uintptr_t meant = nearest_pointer(address, false) - begin;
    if (address - begin < size || meant <= size) {
      memory.size = size;
      memory.offset = static_cast<int64_t>(address - begin);
      memory.name = name_of(begin, size);
      return memory;
    }
  }
  const bool of_device = is_program_memory(address) && !is_host_variable(address);
  memory.space = of_device ? "constant" : "host";
  return memory;
}

}  // namespace checked

CallSite::CallSite(const char* file, int line) {
  checked::here.file = file;
  checked::here.line = line;
}

}  // namespace emulator

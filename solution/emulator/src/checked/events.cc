/*!
 * \file events.cc
 * \brief What the runtime tells: allocations, copies, launches.
 */
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "../arena.h"
#include "../checked.h"
#include "../memory.h"
#include "emulator/site.h"
#include "program.h"
#include "state.h"

namespace emulator {
namespace checked {
namespace {

struct Allocation {
  size_t size;
  Site made, freed;
  bool live;
};

std::mutex mutex;
std::map<uintptr_t, Allocation> allocations;  // freed ones too
std::map<const void*, Site> handles;          // of cuBLAS

thread_local int depth = 0;
thread_local Site here;

// A launch that was refused, until somebody asks for its error. Used until the very end.
Finding& unread_launch() {
  static thread_local Finding* finding = new Finding;
  return *finding;
}

Finding finding_of_host(const char* kind) {
  Finding finding;
  finding.kind = kind;
  finding.at = here;
  return finding;
}

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

void forget_unread() {
  Finding& unread = unread_launch();
  if (unread.kind.empty()) return;
  add_finding(unread);
  unread = Finding();
}

// At the end of the process: what is left, in this order after all else.
struct AtExit {
  ~AtExit() {
    forget_unread();
    for (const auto& entry : allocations) {
      if (!entry.second.live) continue;
      Finding finding;
      finding.kind = "leak";
      finding.at = entry.second.made;
      finding.memory.known = true;
      finding.memory.size = entry.second.size;
      finding.memory.allocated = entry.second.made;
      add_finding(finding);
    }
    for (const auto& entry : handles) {
      Finding finding;
      finding.kind = "cublas handle leaked";
      finding.at = entry.second;
      add_finding(finding);
    }
    write_findings();
  }
} at_exit;

}  // namespace

HostCall::HostCall(const void* place) {
  if (depth++ == 0 && here.file == nullptr) here.address = place;
}

HostCall::~HostCall() {
  if (--depth == 0) here = Site();
}

Site site_of_host() { return here; }

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
  Finding finding = finding_of_host("double free");
  finding.memory = memory_at(reinterpret_cast<uintptr_t>(ptr));
  add_finding(finding);
}

void copied(void* to, const void* from, size_t size) {
  uintptr_t target = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
  if (device_region.has(target) && device_region.has(source))
    return copy_value(target, source, size);
  if (device_region.has(target)) return set_value(device_region, target, size);
  if (!device_region.has(source) || find_value(device_region, source, size) < size) return;
  Finding finding = finding_of_host("uninitialised read global");
  finding.size = size;
  finding.memory = memory_at(source);
  finding.detail = "nothing of what is copied was ever written";
  add_finding(finding);
}

void written(void* ptr, size_t size) {
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  if (device_region.has(address)) set_value(device_region, address, size);
}

namespace {

bool check_span(const void* ptr, size_t span, bool write) {
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  if (!device_region.has(address) || is_device_range(ptr, span)) return true;
  Finding finding = finding_of_host("copy past the end");
  finding.size = span;
  finding.write = write;
  finding.memory = memory_at(address);
  if (finding.memory.freed.address != nullptr && finding.memory.offset >= 0)
    finding.kind = "use after free";
  add_finding(finding);
  return false;
}

}  // namespace

void refused_copy(const void* to, size_t to_span, const void* from, size_t from_span,
                  cudaMemcpyKind kind) {
  if (!check_span(to, to_span, true) || (from != nullptr && !check_span(from, from_span, false)))
    return;
  static const char* const names[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                                      "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice"};
  Finding finding = finding_of_host("copy in the wrong direction");
  finding.size = to_span;
  auto side = [](const void* ptr) { return in_arena(ptr) ? "device" : "host"; };
  finding.detail = std::string("it goes from the ") + side(from) + " to the " + side(to);
  if (kind >= 0 && kind < 4) finding.detail += std::string(", and says ") + names[kind];
  add_finding(finding);
}

void used_by_cublas(const char* function, const char* operand, const void* ptr, size_t span,
                    bool valid) {
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  if (valid) return set_value(device_region, address, span);
  bool on_device = device_region.has(address);
  Finding finding =
      finding_of_host(on_device ? "out-of-bounds read global" : "host pointer in kernel");
  finding.kernel = function;
  finding.size = span;
  finding.memory = memory_at(address);
  finding.detail = std::string("operand ") + operand + " takes " + std::to_string(span) + " bytes";
  add_finding(finding);
}

void cublas_handle_created(const void* handle) {
  std::lock_guard<std::mutex> lock(mutex);
  handles[handle] = here;
}

void cublas_handle_destroyed(const void* handle) {
  std::lock_guard<std::mutex> lock(mutex);
  handles.erase(handle);
}

void launch_begins(const Grid& grid) {
  forget_unread();
  use_program(grid);
  reset_order();
  unsettle_words();
}

void launch_refused(const Grid& grid, const char* why) {
  forget_unread();
  Finding& unread = unread_launch();
  unread.kind = grid.config.shared > 48 * 1024 ? "shared memory over 48 KB" : "launch error unread";
  unread.kernel = grid.site.name;
  unread.launch.file = unread.at.file = grid.site.file;
  unread.launch.line = unread.at.line = grid.site.line;
  unread.grid = grid.config.grid;
  unread.block = grid.config.block;
  unread.detail = why;
  if (unread.kind != "launch error unread") forget_unread();
}

void error_read() { unread_launch() = Finding(); }

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
  memory.space = is_program_memory(address) ? "constant" : "host";
  memory.known = true;
  return memory;
}

}  // namespace checked

CallSite::CallSite(const char* file, int line) {
  checked::here.file = file;
  checked::here.line = line;
}

}  // namespace emulator

/*! \brief Writes what was found so far, for a process that will be ended rather than end. */
extern "C" void emulator_write_findings() {
  emulator::checked::forget_unread();
  emulator::checked::write_findings();
}

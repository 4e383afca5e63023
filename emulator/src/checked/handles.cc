/*!
 * \file handles.cc
 * \brief Handles of cuBLAS that nobody can destroy any more.
 *
 * A program may keep one handle for all of its life. So a handle that is left at the end is told
 * only if it was put into a variable of a function, which is gone, and lies in no variable of the
 * program; or if the same line left several.
 */
#ifdef __linux__
#include <link.h>
#endif

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "../checked.h"
#include "ending.h"
#include "state.h"

namespace emulator {
namespace checked {
namespace {

struct Handle {
  Site made;
  std::thread::id thread;
  bool on_stack;
};

std::mutex mutex;
auto& handles = *new std::map<const void*, Handle>;

// Functions that called this one have their variables above.
bool is_on_stack(const void* ptr) {
  const uintptr_t most = uintptr_t(8) << 20;
  char here;
  return reinterpret_cast<uintptr_t>(ptr) - reinterpret_cast<uintptr_t>(&here) < most;
}

#ifdef __linux__
bool holds(uintptr_t begin, size_t size, const void* value) {
  begin = (begin + sizeof value - 1) / sizeof value * sizeof value;
  for (size_t i = 0; i + sizeof value <= size; i += sizeof value)
    if (std::memcmp(reinterpret_cast<void*>(begin + i), &value, sizeof value) == 0) return true;
  return false;
}

int look_into(dl_phdr_info* info, size_t, void* data) {
  const void* value = data;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || !(header.p_flags & PF_W)) continue;
    // What is read-only once it is relocated holds no handles.
    if (holds(info->dlpi_addr + header.p_vaddr, header.p_memsz, value)) return 1;
  }
  return 0;
}

bool is_in_variable(const void* handle) {
  return dl_iterate_phdr(look_into, const_cast<void*>(handle)) != 0;
}
#else
bool is_in_variable(const void*) { return true; }  // perhaps
#endif

typedef std::pair<std::pair<const void*, int>, std::thread::id> Origin;

Origin origin_of(const Handle& handle) {
  const Site& made = handle.made;
  const void* place = made.address != nullptr ? made.address : made.file;
  return {{place, made.line}, handle.thread};
}

}  // namespace

void cublas_handle_created(const void* handle, const void* variable) {
  std::lock_guard<std::mutex> lock(mutex);
  handles[handle] = {site_of_host(), std::this_thread::get_id(), is_on_stack(variable)};
}

void cublas_handle_destroyed(const void* handle) {
  std::lock_guard<std::mutex> lock(mutex);
  handles.erase(handle);
}

void report_handles() {
  std::lock_guard<std::mutex> lock(mutex);
  std::map<Origin, int> left;
  for (const auto& entry : handles) ++left[origin_of(entry.second)];
  for (const auto& entry : handles) {
    const Handle& handle = entry.second;
    bool lost = handle.on_stack && !is_in_variable(entry.first);
    if (!lost && left[origin_of(handle)] == 1) continue;
    Finding finding;
    finding.kind = Kind::kCublasHandleLeaked;
    finding.at = handle.made;
    add_finding(finding);
  }
}

}  // namespace checked
}  // namespace emulator

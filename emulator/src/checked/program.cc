/*!
 * \file program.cc
 * \brief Where the program's code and variables lie, and what things are called.
 */
#include "program.h"

#include <dlfcn.h>
#ifdef __linux__
#include <link.h>
#endif

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "emulator/parameters.h"
#include "state.h"

namespace emulator {
namespace checked {

// Where the program's file was loaded.
uintptr_t code_begin = 0;

namespace {

struct Range {
  uintptr_t begin, end;
  bool writable;
};

std::vector<Range> ranges;
const Grid* launched = nullptr;

#ifdef __linux__
int add_ranges(dl_phdr_info* info, size_t, void*) {
  std::vector<Range> all;
  bool is_it = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    all.push_back({begin, begin + header.p_memsz, (header.p_flags & PF_W) != 0});
    is_it = is_it || (code_begin >= begin && code_begin < all.back().end);
  }
  if (is_it) ranges = all;
  return is_it;
}
void find_ranges() { dl_iterate_phdr(add_ranges, nullptr); }
#else
void find_ranges() {}  // any address may be a variable's
#endif

// The names of each kernel's parameters, with commas.
std::map<std::string, std::string>& parameters() {
  static auto* all = new std::map<std::string, std::string>;
  return *all;
}

// Where variables of the host end, by where they begin. Libraries are loaded, and closed, while no
// kernel runs.
std::map<uintptr_t, uintptr_t>& host_variables() {
  static auto* all = new std::map<uintptr_t, uintptr_t>;
  return *all;
}

// "ns::kernel<float, 4>" is "kernel"
std::string base_name(std::string kernel) {
  kernel = kernel.substr(0, kernel.find('<'));
  size_t last = kernel.find_last_of(":( &");
  return last == std::string::npos ? kernel : kernel.substr(last + 1);
}

}  // namespace

void use_program(const Grid& grid) {
  launched = &grid;
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(grid.function), &info) == 0) return;
  uintptr_t base = reinterpret_cast<uintptr_t>(info.dli_fbase);
  if (base == code_begin) return;
  code_begin = base;
  find_ranges();
  drop_region(&program_region);
  for (const Range& range : ranges)
    if (range.writable && program_region.size == 0) {
      program_region = make_region(range.begin, range.end - range.begin);
      set_allocated(program_region, program_region.begin, program_region.size, true);
    }
}

bool is_program_memory(uintptr_t address) {
  return std::any_of(ranges.begin(), ranges.end(), [address](const Range& range) {
    return address >= range.begin && address < range.end;
  });
}

bool is_host_variable(uintptr_t address) {
  const auto& all = host_variables();
  const auto behind = all.upper_bound(address);
  return behind != all.begin() && address < std::prev(behind)->second;
}

bool is_own_memory(uintptr_t address) {
  if (ranges.empty() || is_program_memory(address)) return true;
  if (launched != nullptr &&
      address - reinterpret_cast<uintptr_t>(launched->call) < launched->call_size)
    return true;
  // threadIdx and its like
  const uintptr_t near = 4096, index = reinterpret_cast<uintptr_t>(&threadIdx);
  return address + near - index < 2 * near;
}

const void* address_of_place(uint32_t place) {
  return place == kNoPlace ? nullptr : reinterpret_cast<void*>(code_begin + place);
}

std::string parameter_name(const std::string& kernel, size_t position) {
  auto found = parameters().find(base_name(kernel));
  if (found == parameters().end()) return "";
  std::string names = found->second;
  for (; position > 0; --position) {
    size_t comma = names.find(',');
    if (comma == std::string::npos) return "";
    names = names.substr(comma + 1);
  }
  return names.substr(0, names.find(','));
}

}  // namespace checked

ParameterNames::ParameterNames(const char* kernel, const char* names) {
  checked::parameters()[kernel] = names;
}

HostVariable::HostVariable(const volatile void* begin, unsigned long size)
    : begin_(reinterpret_cast<uintptr_t>(begin)) {
  checked::host_variables()[begin_] = begin_ + size;
}
HostVariable::~HostVariable() { checked::host_variables().erase(begin_); }

}  // namespace emulator

/*!
 * \file stray.cc
 * \brief Addresses in kernels that are neither the device's nor the kernel's own.
 *
 * An index that is far outside leads anywhere. It is called memory of the host only where the
 * host has memory, and where it is the checked build's own the kernel ends, as on a GPU.
 */
#include <cstdio>
#include <string>

#include "../block.h"
#include "../checked.h"
#include "access.h"

namespace emulator {
namespace checked {
namespace {

const uintptr_t kNullPage = 4096;
// A null pointer and an index, where no program lies.
const uintptr_t kNearNull = uintptr_t(1) << 32;

bool is_within(uintptr_t address, const void* begin, size_t size) {
  return address - reinterpret_cast<uintptr_t>(begin) < size;
}

// Between device memory and the libraries there is much of it.
bool is_shadow(const State* s, uintptr_t address) {
  const Region* regions[] = {&device_region, &program_region, &s->shared};
  for (const Region* region : regions)
    if (is_within(address, region->words, (region->size / 4 + 2) * sizeof(Word))) return true;
  return is_within(address, settled_words, device_region.size / 4) || is_owner(address);
}

#ifdef __linux__
// Whether there is memory that can be read. The range that was found last is kept.
bool is_mapped(uintptr_t address) {
  static thread_local uintptr_t begin = 0, end = 0;
  if (address >= begin && address < end) return true;
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return true;
  char line[512], rights = '-';
  bool found = false;
  while (!found && std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long from, to;
    if (std::sscanf(line, "%lx-%lx %c", &from, &to, &rights) != 3) continue;
    found = address >= from && address < to && rights == 'r';
    if (found) begin = from, end = to;
  }
  std::fclose(maps);
  return found;
}
#else
bool is_mapped(uintptr_t) { return true; }
#endif

std::string hexadecimal(uintptr_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

}  // namespace

void report_stray(State* s, uintptr_t address, size_t size, bool write, const void* place) {
  s->stray = address;
  const bool shadow = address >= kNullPage && is_shadow(s, address);
  const bool mapped = !shadow && is_mapped(address);
  Kind outside = write ? Kind::kOutOfBoundsWriteGlobal : Kind::kOutOfBoundsReadGlobal;
  Finding finding = finding_here(Kind::kHostPointerInKernel, place, size, write);
  if (address < kNullPage) {
    finding.detail = "the address is null";
  } else if (!mapped && address < kNearNull && has_null_parameter()) {
    finding.detail = "the address is " + hexadecimal(address) + ", an index behind a null pointer";
  } else if (mapped) {
    finding.memory = memory_at(address);
    if (finding.memory.size != 0) finding.kind = outside;  // of memory for both
  } else {
    finding.kind = outside;
    finding.memory = memory_missed(address);
    finding.detail = "there is nothing at this address";
  }
  add_finding(finding);
  if (!shadow) return;
  Block* block = Block::running();
  const char* what = ", which is not device memory";
  block->fail(cudaErrorIllegalAddress, "emulated GPU: " + block->where() + ": accessed address " +
                                           hexadecimal(address) + what);
}

void faulted(uintptr_t address) {
  State* s = state;
  if (s == nullptr || device_region.has(address) || address - s->stray < 64) return;
  if (Block::running()->is_stack_guard(address))
    return add_finding(finding_here(Kind::kStackOverflow, s->last_place, 0, false));
  report_stray(s, address, 0, false, s->last_place);
}

void misaligned(uintptr_t address, unsigned alignment) {
  State* s = state;
  if (s == nullptr || s->misaligned == address) return;
  bool shared = s->shared.has(address);
  Finding finding =
      finding_here(shared ? Kind::kMisalignedAccessShared : Kind::kMisalignedAccessGlobal,
                   s->last_place, 0, false);
  finding.memory = memory_at(address);
  finding.detail = "it must be a multiple of " + std::to_string(alignment);
  add_finding(finding);
}

void host_faulted(uintptr_t address) {
  if (is_told_of_host(address)) return;
  Finding finding;
  finding.kind = Kind::kDevicePointerOnHost;
  finding.memory = memory_at(address);
  finding.detail = "in code that is not checked";
  add_finding(finding);
}

}  // namespace checked
}  // namespace emulator

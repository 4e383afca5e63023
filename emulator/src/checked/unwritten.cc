/*!
 * \file unwritten.cc
 * \brief Keeps which bytes of the host came from device memory without a value.
 */
#include "unwritten.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "../checked.h"
#include "state.h"

namespace emulator {
namespace checked {

bool unwritten_in_use = false;

namespace {

const size_t kMostRuns = 4096;      // of one copy
const size_t kMostBytes = 1 << 16;  // of one run, from its start
const size_t kLargestValue = 16;    // what is read at once as one value

// Bytes side by side that came without a value.
struct Run {
  uintptr_t from;  // in device memory
  size_t size;
  std::string bytes;  // as they came: if others are there now, somebody wrote them
  Site copy;
  size_t copied, missing;  // of the whole copy
};

std::mutex mutex;
std::map<uintptr_t, Run>& runs() {
  static auto* all = new std::map<uintptr_t, Run>;  // by address on the host; used until the end
  return *all;
}

// What bytes there are; one alone if all are the same, as in memory that is fresh.
std::string contents(const char* bytes, size_t size) {
  if (std::memcmp(bytes, bytes + 1, size - 1) == 0) size = 1;
  return std::string(bytes, std::min(size, kMostBytes));
}

// Whether bytes of a run are still as they came.
bool is_unchanged(const Run& run, size_t offset, const char* now, size_t size) {
  if (run.bytes.size() > 1) return std::memcmp(now, run.bytes.data() + offset, size) == 0;
  return std::count(now, now + size, run.bytes[0]) == static_cast<std::ptrdiff_t>(size);
}

// The first run that ends behind an address. Under the mutex.
std::map<uintptr_t, Run>::iterator first_behind(uintptr_t address) {
  auto found = runs().upper_bound(address);
  if (found == runs().begin()) return found;
  auto before = std::prev(found);
  return before->first + before->second.size > address ? before : found;
}

// Under the mutex.
void forget(uintptr_t begin, size_t size) {
  for (auto run = first_behind(begin); run != runs().end() && run->first < begin + size;)
    run = runs().erase(run);
  unwritten_in_use = !runs().empty();
}

bool has_value(uintptr_t address) {
  return device_region.word(address)->write >> (address & 3) & 1;
}

// From `at` on: how many bytes, less than `limit`, are alike in having a value.
size_t length_of_run(uintptr_t at, size_t limit) {
  const bool first = has_value(at);
  const unsigned all = first ? 15 : 0;
  size_t i = 1;
  while (i < limit) {
    const bool whole = ((at + i) & 3) == 0 && limit - i >= 4;
    if (whole && (device_region.word(at + i)->write & 15) == all)
      i += 4;
    else if (has_value(at + i) == first)
      ++i;
    else
      break;
  }
  return i;
}

}  // namespace

void note_unwritten(uintptr_t to, uintptr_t from, size_t size) {
  std::lock_guard<std::mutex> lock(mutex);
  if (unwritten_in_use) forget(to, size);
  std::map<uintptr_t, Run> found;
  size_t missing = 0;
  for (size_t i = 0, length; i < size && found.size() < kMostRuns; i += length) {
    length = length_of_run(from + i, size - i);
    if (has_value(from + i)) continue;
    missing += length;
    const std::string bytes = contents(reinterpret_cast<const char*>(to + i), length);
    const size_t known = bytes.size() > 1 ? bytes.size() : length;
    found[to + i] = {from + i, known, bytes, site_of_host(), size, 0};
  }
  for (auto& run : found) run.second.missing = missing;
  runs().merge(found);
  unwritten_in_use = !runs().empty();
}

void check_unwritten(uintptr_t address, size_t size, bool write, const void* place) {
  std::lock_guard<std::mutex> lock(mutex);
  if (write) return forget(address, size);
  auto found = first_behind(address);
  if (found == runs().end() || found->first > address || size > kLargestValue) return;
  const Run run = found->second;
  const size_t offset = address - found->first;
  if (offset + size > run.size) return;
  forget(found->first, run.size);
  if (!is_unchanged(run, offset, reinterpret_cast<const char*>(address), size)) return;
  Finding finding;
  finding.kind = Kind::kUnwrittenResult;
  finding.at = run.copy;
  finding.size = size;
  finding.has_other = true;
  finding.other_at.address = place;
  finding.memory = memory_at(run.from + offset);
  finding.detail = "of the " + std::to_string(run.copied) + " bytes that are copied, " +
                   std::to_string(run.missing) + " were never written";
  add_finding(finding);
}

}  // namespace checked
}  // namespace emulator

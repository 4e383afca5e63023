/*!
 * \file host_regions.cc
 * \brief The table of memory of the host that the device may use.
 */
#include "host_regions.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "../checked.h"
#include "streams.h"

namespace emulator {
namespace checked {
namespace {

// Never deleted: the program's static objects may free memory at the end of the process.
auto& host_regions = *new std::map<uintptr_t, HostRegion>;
std::mutex regions_mutex;
std::atomic<uintptr_t> lowest(UINTPTR_MAX), highest(0);

}  // namespace

bool find_region(uintptr_t address, HostRegion* region) {
  if (address < lowest || address >= highest) return false;
  std::lock_guard<std::mutex> lock(regions_mutex);
  auto after = host_regions.upper_bound(address);
  if (after == host_regions.begin()) return false;
  *region = std::prev(after)->second;
  return region->operations.has(address);
}

bool find_region(uintptr_t address, Region* region) {
  HostRegion found;
  if (!find_region(address, &found)) return false;
  *region = found.operations;
  return true;
}

void host_memory_made(void* ptr, size_t size) {
  std::lock_guard<std::mutex> lock(regions_mutex);
  uintptr_t begin = reinterpret_cast<uintptr_t>(ptr);
  Region region = make_region(begin, size + (begin & 3));
  host_regions[region.begin] = {region, make_region(begin, size + (begin & 3))};
  lowest = std::min<uintptr_t>(lowest, region.begin);
  highest = std::max<uintptr_t>(highest, region.begin + region.size);
}

void host_memory_dropped(void* ptr) {
  std::lock_guard<std::mutex> lock(regions_mutex);
  auto found = host_regions.find(reinterpret_cast<uintptr_t>(ptr) & ~uintptr_t(3));
  if (found == host_regions.end()) return;
  drop_region(&found->second.operations);
  drop_region(&found->second.accesses);
  host_regions.erase(found);
}

void forget_host_accesses() {
  std::lock_guard<std::mutex> lock(regions_mutex);
  for (auto& entry : host_regions) {
    const Region before = entry.second.accesses;
    drop_region(&entry.second.accesses);
    entry.second.accesses = make_region(before.begin, before.size);
  }
}

}  // namespace checked
}  // namespace emulator

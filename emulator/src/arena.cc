/*!
 * \file arena.cc
 * \brief The allocator of device memory.
 */
#include "arena.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "checked.h"
#include "counts.h"
#include "protection.h"

namespace emulator {
namespace {

const int kLockTries = 100;  // a millisecond each

const size_t kAlignment = 256;  // as cudaMalloc's
const size_t kReserve = size_t(64) << 30, kSmallestReserve = size_t(64) << 20;
const size_t kDefaultCapacity = size_t(8) << 30;
// Freed memory that the system is not given back yet: getting new pages costs more than filling
// old ones.
const size_t kMostKept = size_t(256) << 20;
// A large page, as x86-64 and arm64 have them. An allocation of that size or more starts at one
// and asks for them: whoever reads arrays at the memory's speed would else wait for the TLB.
const size_t kLargePage = size_t(2) << 20;

struct Allocation {
  uintptr_t pages;    // the first page
  size_t pages_size;  // without the guard page
  size_t size;        // as asked for
  bool open;          // for all threads; without protection keys
};

// Read by signal handlers, hence atomics beside the lock.
std::atomic<uintptr_t> arena_begin(0), arena_end(0);
std::atomic<int64_t> bytes_live(0);

std::mutex mutex;
std::map<uintptr_t, Allocation> live;  // by the address that the program has
std::vector<uintptr_t> opened;         // what may be open of it, by the same address
std::atomic<bool> any_open(false);
std::map<uintptr_t, size_t> free_by_address;  // ranges of pages
std::set<std::pair<size_t, uintptr_t>> free_by_size;
size_t kept = 0;  // bytes freed since pages were last given back, less those used again

size_t page_size() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

uintptr_t end_of(const std::pair<size_t, uintptr_t>& range) { return range.second + range.first; }

void add_free(uintptr_t address, size_t size) {
  free_by_address[address] = size;
  free_by_size.insert({size, address});
}

void remove_free(std::map<uintptr_t, size_t>::iterator range) {
  free_by_size.erase({range->second, range->first});
  free_by_address.erase(range);
}

// Adds a range, joined with the free ranges that it touches.
void give_range(uintptr_t address, size_t size) {
  auto after = free_by_address.lower_bound(address);
  if (after != free_by_address.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == address) {
      address = before->first;
      size += before->second;
      remove_free(before);
    }
  }
  if (after != free_by_address.end() && after->first == address + size) {
    size += after->second;
    remove_free(after);
  }
  add_free(address, size);
}

// The smallest free range with room for pages that start at a multiple of unit, cut to them; 0
// if there is none.
uintptr_t take_range(size_t size, size_t unit) {
  auto found = free_by_size.lower_bound({size, 0});
  while (found != free_by_size.end() && round_up(found->second, unit) + size > end_of(*found))
    ++found;
  if (found == free_by_size.end()) return 0;
  const uintptr_t begin = found->second, end = end_of(*found), address = round_up(begin, unit);
  remove_free(free_by_address.find(begin));
  if (address > begin) add_free(begin, address - begin);
  if (address + size < end) add_free(address + size, end - address - size);
  return address;
}

// Pages of any kind, and in large ones where that can be had.
uintptr_t take_pages(size_t size) {
  uintptr_t address = size < kLargePage ? 0 : take_range(size, kLargePage);
  return address != 0 ? address : take_range(size, page_size());
}

// A limit on the address space (ulimit -v) must leave room for the program itself.
size_t reserve_wanted() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kReserve;
  return std::min(kReserve, round_up(static_cast<size_t>(limit.rlim_cur) / 2, page_size()));
}

// A forked child must not inherit the lock from a thread that it has not.
void lock_all() { mutex.lock(); }
void unlock_all() { mutex.unlock(); }

void reserve() {
  if (arena_begin != 0) return;
  for (size_t size = reserve_wanted(); size >= kSmallestReserve; size /= 2) {
    size = round_up(size, page_size());
    void* memory = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) continue;
    uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
    add_free(begin, size);
    arena_end = begin + size;
    arena_begin = begin;
    EMULATOR_CHECK(arena_reserved(begin, size));
    pthread_atfork(lock_all, unlock_all, unlock_all);
    return;
  }
}

// "8G", "512M", "1000000"
size_t parse_size(const char* text) {
  char* unit;
  size_t size = std::strtoull(text, &unit, 10);
  if (*unit == 'k' || *unit == 'K') size <<= 10;
  if (*unit == 'm' || *unit == 'M') size <<= 20;
  if (*unit == 'g' || *unit == 'G') size <<= 30;
  return size;
}

// NaN for any floating-point type, so that what was never written shows.
void fill(uintptr_t address, size_t size) {
  DeviceAccess access;
  access.open(reinterpret_cast<void*>(address));
  std::memset(reinterpret_cast<void*>(address), 0xff, size);
}

void note_open(uintptr_t start) {
  live[start].open = true;
  opened.push_back(start);
  any_open = true;
}

Opened open(uintptr_t start, const Allocation& allocation) {
  if (allocation.open) return Opened::kBefore;
  open_device_memory(reinterpret_cast<void*>(allocation.pages), allocation.pages_size);
  note_open(start);
  return Opened::kNow;
}

// Finds pages for an allocation. Its address, or 0 if there are none.
uintptr_t place(Allocation* allocation) {
  std::lock_guard<std::mutex> lock(mutex);
  reserve();
  uintptr_t pages = take_pages(allocation->pages_size + page_size());
  if (pages == 0) return 0;
  if (!open_device_memory(reinterpret_cast<void*>(pages), allocation->pages_size)) {
    give_range(pages, allocation->pages_size + page_size());
    return 0;
  }
#ifdef MADV_HUGEPAGE
  if (allocation->pages_size >= kLargePage)
    madvise(reinterpret_cast<void*>(pages), allocation->pages_size, MADV_HUGEPAGE);
#endif
  allocation->pages = pages;
  kept -= std::min(kept, allocation->pages_size);
  uintptr_t start =
      pages + allocation->pages_size - checked::kPadding - round_up(allocation->size, kAlignment);
  live[start] = *allocation;
  if (is_toggled()) note_open(start);
  add_to_count(Count::kAllocations, 1);
  bytes_live += static_cast<int64_t>(allocation->size);
  return start;
}

void give_pages_back() {
  for (const auto& range : free_by_address)
    madvise(reinterpret_cast<void*>(range.first), range.second, MADV_DONTNEED);
  kept = 0;
}

cudaError_t release(std::map<uintptr_t, Allocation>::iterator found) {
  Allocation allocation = found->second;
  const uintptr_t found_at = found->first;
  (void)found_at;
  live.erase(found);
  bytes_live -= static_cast<int64_t>(allocation.size);
#ifdef EMULATOR_CHECKED
  // Never used again, so that whoever still uses it is found, and goes on.
  checked::freed(found_at);
  open_device_memory(reinterpret_cast<void*>(allocation.pages), allocation.pages_size);
  return cudaSuccess;
#endif
  close_device_memory(reinterpret_cast<void*>(allocation.pages), allocation.pages_size);
  give_range(allocation.pages, allocation.pages_size + page_size());
  kept += allocation.pages_size;
  if (kept > kMostKept) give_pages_back();
  return cudaSuccess;
}

// Another thread is soon done with the lock. A signal handler may have come where this thread has
// it, and would wait for itself for ever.
bool lock_soon(std::unique_lock<std::mutex>* lock) {
  for (int tries = 0; !lock->try_lock() && tries < kLockTries; ++tries) {
    const timespec pause = {0, 1000000};
    nanosleep(&pause, nullptr);
  }
  return lock->owns_lock();
}

// The allocation at or before an address.
const std::pair<const uintptr_t, Allocation>* find(uintptr_t address) {
  auto after = live.upper_bound(address);
  return after == live.begin() ? nullptr : &*std::prev(after);
}

}  // namespace

size_t arena_capacity() {
  static const char* wanted = std::getenv("EMULATOR_MEMORY");
  static const size_t capacity = wanted ? parse_size(wanted) : kDefaultCapacity;
  return capacity;
}

size_t arena_used() { return static_cast<size_t>(bytes_live); }

cudaError_t arena_allocate(void** ptr, size_t size) {
  *ptr = nullptr;
  if (size == 0) return cudaSuccess;
  if (size > arena_capacity() || arena_used() > arena_capacity() - size)
    return cudaErrorMemoryAllocation;
  Allocation allocation{
      0, round_up(round_up(size, kAlignment), page_size()) + 2 * checked::kPadding, size, false};
  uintptr_t start = place(&allocation);
  if (start == 0) return cudaErrorMemoryAllocation;
  fill(allocation.pages, allocation.pages_size);
  EMULATOR_CHECK(allocated(start, size));
  host_goes_on();
  *ptr = reinterpret_cast<void*>(start);
  return cudaSuccess;
}

cudaError_t arena_free(void* ptr) {
  if (ptr == nullptr) return cudaSuccess;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = live.find(reinterpret_cast<uintptr_t>(ptr));
  return found == live.end() ? cudaErrorInvalidValue : release(found);
}

void arena_free_all() {
  std::lock_guard<std::mutex> lock(mutex);
  while (!live.empty()) release(live.begin());
}

bool in_arena(const void* ptr) {
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  return address >= arena_begin && address < arena_end;
}

bool is_device_range(const void* ptr, size_t size) {
  if (!in_arena(ptr)) return false;
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  std::lock_guard<std::mutex> lock(mutex);
  const auto* found = find(address);
  if (found == nullptr) return false;
  size_t offset = address - found->first;
  return offset <= found->second.size && size <= found->second.size - offset;
}

bool try_locate(uintptr_t address, Place* place) {
  *place = Place{in_arena(reinterpret_cast<void*>(address)), false, 0, 0};
  if (!place->in_arena) return true;
  std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
  if (!lock_soon(&lock)) return false;
  const auto* found = find(address);
  if (found == nullptr) return true;
  const Allocation& allocation = found->second;
  place->live = address < allocation.pages + allocation.pages_size + page_size();
  place->start = found->first;
  place->size = allocation.size;
  return true;
}

void for_each_allocation(const std::function<void(uintptr_t, size_t)>& function) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto& entry : live) function(entry.first, entry.second.size);
}

Opened arena_open(uintptr_t address) {
  if (!in_arena(reinterpret_cast<void*>(address))) return Opened::kNever;
  std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
  if (!lock_soon(&lock)) return Opened::kNever;
  // Its pages begin a little before the address that the program has.
  auto after = live.upper_bound(address);
  if (after == live.end() || address < after->second.pages) {
    if (after == live.begin()) return Opened::kNever;
    --after;
    if (address >= after->second.pages + after->second.pages_size) return Opened::kNever;
  }
  return open(after->first, after->second);
}

void arena_open_all() {
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto& entry : live) open(entry.first, entry.second);
}

void arena_close(const std::atomic<int>& users) {
  std::lock_guard<std::mutex> lock(mutex);
  // Who counts itself later opens what it needs later, too.
  if (users > 0) return;
  for (uintptr_t start : opened) {
    auto found = live.find(start);
    if (found == live.end() || !found->second.open) continue;  // freed, or there twice
    close_device_memory(reinterpret_cast<void*>(found->second.pages), found->second.pages_size);
    found->second.open = false;
  }
  opened.clear();
  any_open = false;
}

bool is_arena_open() { return any_open; }

}  // namespace emulator

int64_t emulator_live_bytes() { return emulator::bytes_live; }

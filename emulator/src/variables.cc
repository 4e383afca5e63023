/*!
 * \file variables.cc
 * \brief Two copies of variables that take turns at the same addresses.
 *
 * A few bytes change places one by one. Of large arrays it is the pages that do, which the system
 * moves without a look at what is in them.
 */
#include "variables.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace emulator {
namespace {

const size_t kManyPages = 16;  // which are faster moved than copied

size_t page_size() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

char* map(size_t size) {
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

void exchange(char* a, char* b, size_t size) {
  char between[4096];
  for (size_t at = 0; at < size; at += sizeof between) {
    const size_t count = std::min(sizeof between, size - at);
    std::memcpy(between, a + at, count);
    std::memcpy(a + at, b + at, count);
    std::memcpy(b + at, between, count);
  }
}

class Variables {
 public:
  Variables(char* begin, char* end) : begin_(begin), end_(end) {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(begin) % page_size();
    char* const memory = map(size() + offset);
    if (memory == nullptr) std::abort();
    away_ = memory + offset;
    copy();
    find_pages(page_size() - offset);
  }

  size_t size() const { return static_cast<size_t>(end_ - begin_); }
  bool has(const void* ptr) const { return ptr >= begin_ && ptr < end_; }
  char* away(const void* ptr) const { return away_ + (static_cast<const char*>(ptr) - begin_); }

  void change_places() {
    char *const first = begin_ + pages_, *const last = first + pages_size_;
    if (pages_size_ == 0 || !move_pages(first)) {
      exchange(begin_, away_, size());
      return;
    }
    exchange(begin_, away_, pages_);
    exchange(last, away(last), static_cast<size_t>(end_ - last));
  }

 private:
  // What is zero already is not written, since that would take memory.
  void copy() {
    for (char* at = begin_; at < end_; at += page_size()) {
      const size_t count = std::min(page_size(), static_cast<size_t>(end_ - at));
      if (std::any_of(at, at + count, [](char byte) { return byte != 0; }))
        std::memcpy(away(at), at, count);
    }
  }

  void find_pages(size_t until_first) {
    const size_t whole = size() < until_first ? 0 : (size() - until_first) / page_size();
    if (whole < kManyPages) return;
    spare_ = map(whole * page_size());
    if (spare_ == nullptr) return;
    pages_ = until_first, pages_size_ = whole * page_size();
  }

  // Moves the pages, or, if the system does not, none of them and never again. Where they were,
  // something is left, so that nobody else is given these addresses.
  bool move_pages(char* first) {
#ifdef MREMAP_DONTUNMAP
    const int how = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    const auto move = [this](char* from, char* to) {
      return mremap(from, pages_size_, pages_size_, how, to) == to;
    };
    if (move(first, spare_)) {
      if (!move(away(first), first) || !move(spare_, away(first))) std::abort();
      return true;
    }
#endif
    pages_size_ = 0;
    return false;
  }

  char *begin_, *end_, *away_;
  char* spare_ = nullptr;
  size_t pages_ = 0, pages_size_ = 0;  // where whole pages begin, from begin_ on
};

std::mutex mutex;
// Programs tell them before main.
std::vector<Variables>& all() {
  static auto* found = new std::vector<Variables>;
  return *found;
}
std::atomic<bool> has_any(false);
int users = 0;  // under the mutex
const void *code_begin = nullptr, *code_end = nullptr;

void change_places() {
  for (Variables& each : all()) each.change_places();
}

const Variables* find(const void* ptr) {
  for (const Variables& each : all())
    if (each.has(ptr)) return &each;
  return nullptr;
}

}  // namespace

void add_variables(char* begin, char* end) {
  std::lock_guard<std::mutex> lock(mutex);
  if (begin >= end) return;
  all().emplace_back(begin, end);
  has_any = true;
}

void add_code_of_kernels(const void* begin, const void* end) { code_begin = begin, code_end = end; }

bool is_code_of_kernels(const void* address) { return address >= code_begin && address < code_end; }

bool is_variable(const void* ptr) { return has_any && find(ptr) != nullptr; }

KernelVariables::KernelVariables(bool wanted) : uses_(wanted && has_any) {
  if (!uses_) return;
  std::lock_guard<std::mutex> lock(mutex);
  if (users++ == 0) change_places();
}

KernelVariables::~KernelVariables() {
  if (!uses_) return;
  std::lock_guard<std::mutex> lock(mutex);
  if (--users == 0) change_places();
}

VariablesStay::VariablesStay() {
  if (has_any) lock_ = std::unique_lock<std::mutex>(mutex);
}

char* VariablesStay::of_kernels(const void* ptr) const {
  const Variables* found = lock_ && users == 0 ? find(ptr) : nullptr;
  return found != nullptr ? found->away(ptr) : static_cast<char*>(const_cast<void*>(ptr));
}

}  // namespace emulator

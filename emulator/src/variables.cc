/*!
 * \file variables.cc
 * \brief Two copies of variables that take turns at the same addresses.
 *
 * A few bytes change places one by one. Of large arrays it is the pages that do, which the system
 * moves without a look at what is in them.
 */
#include "variables.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace emulator {
namespace {

const size_t kManyPages = 16;  // which are faster moved than copied
// What a table of pages covers, on x86-64 and arm64. The system moves whole tables between places
// that lie alike in theirs.
const size_t kTable = size_t(2) << 20;

size_t page_size() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Memory that lies as something else does in its table of pages.
class Mapping {
 public:
  Mapping(const char* like, size_t size) : size_(size + 2 * kTable) {
    memory_ =
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) return;
    const uintptr_t place = reinterpret_cast<uintptr_t>(memory_);
    begin_ = static_cast<char*>(memory_) + (reinterpret_cast<uintptr_t>(like) - place) % kTable;
  }
  char* begin() const { return begin_; }
  void give_back() {
    if (begin_ != nullptr) munmap(memory_, size_);
  }

 private:
  void* memory_;
  size_t size_;
  char* begin_ = nullptr;
};

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
  Variables(char* begin, char* end)
      : begin_(begin), end_(end), other_(begin, size()), away_(other_.begin()) {
    if (away_ == nullptr) {
      std::fprintf(stderr, "emulated GPU: no memory for %zu bytes of variables\n", size());
      std::abort();
    }
    copy();
    find_pages(page_size() - reinterpret_cast<uintptr_t>(begin) % page_size());
  }

  void give_back() {
    other_.give_back();
    if (pages_size_ != 0) spare_.give_back();
  }

  size_t size() const { return static_cast<size_t>(end_ - begin_); }
  const char* begin() const { return begin_; }
  bool has(const void* ptr) const { return ptr >= begin_ && ptr < end_; }
  bool is_of_kernels() const { return of_kernels_; }
  char* away(const void* ptr) const { return away_ + (static_cast<const char*>(ptr) - begin_); }

  // Those that came while a kernel ran take part from the next one on. False if they stay.
  bool change_places(bool to_kernels) {
    if (of_kernels_ == to_kernels) return false;
    of_kernels_ = to_kernels;
    char *const first = begin_ + pages_, *const last = first + pages_size_;
    if (pages_size_ == 0 || !move_pages(first)) {
      exchange(begin_, away_, size());
      return true;
    }
    exchange(begin_, away_, pages_);
    exchange(last, away(last), static_cast<size_t>(end_ - last));
    return true;
  }

  // What is both the host's and the kernels' is as those left it that were at work.
  void take_over(char* begin, char* end) {
    begin = std::max(begin, begin_), end = std::min(end, end_);
    if (begin < end) std::memcpy(begin, away(begin), static_cast<size_t>(end - begin));
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
    spare_ = Mapping(begin_ + until_first, whole * page_size());
    if (spare_.begin() == nullptr) return;
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
    if (move(first, spare_.begin())) {
      if (!move(away(first), first) || !move(spare_.begin(), away(first))) std::abort();
      return true;
    }
#endif
    spare_.give_back();
    pages_size_ = 0;
    return false;
  }

  char *begin_, *end_;
  Mapping other_, spare_ = other_;
  char* away_;
  bool of_kernels_ = false;            // whose are at their place
  size_t pages_ = 0, pages_size_ = 0;  // where whole pages begin, from begin_ on
};

struct Range {
  char *begin, *end;
  bool has(const void* ptr) const { return ptr >= begin && ptr < end; }
};

std::mutex mutex;
// Programs tell them before main.
struct All {
  std::vector<Variables> variables;
  std::vector<Range> shared;  // memory of the host that is the device's as well
};
All& all() {
  static auto* found = new All;
  return *found;
}
std::atomic<bool> has_any(false);
int users = 0;  // under the mutex

// Asked in kernels, also in those that run before all are told: no lock, and no memory.
struct CodeOfKernels {
  std::atomic<const char*> begin, end;
};
CodeOfKernels code[256];
std::atomic<int> codes(0);  // how many of them have been in use

void change_places() {
  for (Variables& each : all().variables) {
    if (!each.change_places(users > 0)) continue;
    for (const Range& range : all().shared) each.take_over(range.begin, range.end);
  }
}

const Variables* find(const void* ptr) {
  for (const Variables& each : all().variables)
    if (each.has(ptr)) return &each;
  return nullptr;
}

bool is_shared(const void* ptr) {
  const auto& shared = all().shared;
  return std::any_of(shared.begin(), shared.end(),
                     [ptr](const Range& range) { return range.has(ptr); });
}

// In a forked child no kernel runs.
void before_fork() { mutex.lock(); }
void in_parent() { mutex.unlock(); }
void in_child() {
  if (users > 0) users = 0, change_places();
  mutex.unlock();
}

}  // namespace

// Where a linker does not keep to the order of what it links, variables and code of the runtime may
// lie between the ends, as these do. The variables must never change places; then none do, and no
// code counts as that of kernels.
static volatile char valued = 1;

static bool is_apart(const void* begin, const void* end) {
  const auto has = [=](const volatile void* ptr) { return ptr >= begin && ptr < end; };
  return begin < end && !has(&mutex) && !has(&valued) &&
         !has(reinterpret_cast<const void*>(add_variables));
}

void add_variables(char* begin, char* end) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(before_fork, in_parent, in_child); });
  std::lock_guard<std::mutex> lock(mutex);
  if (!is_apart(begin, end)) return;
  all().variables.emplace_back(begin, end);
  has_any = true;
}

void drop_variables(const char* begin) {
  std::lock_guard<std::mutex> lock(mutex);
  auto& variables = all().variables;
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [=](const Variables& each) { return each.begin() == begin; });
  if (found == variables.end()) return;
  found->change_places(false);
  found->give_back();
  variables.erase(found);
}

void share_variables(void* begin, size_t size) {
  char* const first = static_cast<char*>(begin);
  std::lock_guard<std::mutex> lock(mutex);
  all().shared.push_back({first, first + size});
}

void part_variables(const void* begin) {
  std::lock_guard<std::mutex> lock(mutex);
  auto& shared = all().shared;
  const auto is_it = [begin](const Range& range) { return range.begin == begin; };
  shared.erase(std::remove_if(shared.begin(), shared.end(), is_it), shared.end());
}

void add_code_of_kernels(const void* begin, const void* end) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!is_apart(begin, end)) return;
  const auto free = std::find_if(std::begin(code), std::end(code),
                                 [](const CodeOfKernels& each) { return each.end == nullptr; });
  if (free == std::end(code)) return;
  free->begin = static_cast<const char*>(begin), free->end = static_cast<const char*>(end);
  codes = std::max(codes.load(), static_cast<int>(free - code) + 1);
}

void drop_code_of_kernels(const void* begin) {
  std::lock_guard<std::mutex> lock(mutex);
  for (CodeOfKernels& each : code)
    if (each.begin == begin) each.end = each.begin = nullptr;
}

bool is_code_of_kernels(const void* address) {
  for (int i = 0; i < codes; ++i)
    if (address >= code[i].begin && address < code[i].end) return true;
  return false;
}

bool is_variable(const void* ptr) {
  if (!has_any) return false;
  std::lock_guard<std::mutex> lock(mutex);
  return find(ptr) != nullptr;
}

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

char* VariablesStay::place(const void* ptr, bool of_kernels) const {
  char* const here = static_cast<char*>(const_cast<void*>(ptr));
  const Variables* found = lock_ ? find(ptr) : nullptr;
  if (found == nullptr || found->is_of_kernels() == of_kernels || is_shared(ptr)) return here;
  return found->away(ptr);
}

}  // namespace emulator

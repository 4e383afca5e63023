/*!
 * \file counts.cc
 * \brief A page of memory, opened and closed by the system.
 */
#include "counts.h"

#include <sys/mman.h>
#include <unistd.h>

#include <mutex>

#include "cuda_runtime_api.h"

namespace emulator {
namespace {

const uintptr_t kLargestPage = 1 << 16;

// Twice the largest page, so that one lies in it wherever it begins. Its address is computed anew
// each time: a variable that held it could be changed.
char memory[2 * kLargestPage];

int64_t* counts() {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  return reinterpret_cast<int64_t*>((begin + kLargestPage - 1) & ~(kLargestPage - 1));
}

}  // namespace

void add_to_count(Count count, int64_t number) { add_to_counts(count, &number, 1); }

void add_to_counts(Count first, const int64_t* numbers, int count) {
  static std::mutex* mutex = new std::mutex;
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::lock_guard<std::mutex> lock(*mutex);
  mprotect(counts(), page, PROT_READ | PROT_WRITE);
  for (int i = 0; i < count; ++i) counts()[static_cast<int>(first) + i] += numbers[i];
  mprotect(counts(), page, PROT_READ);
}

int64_t count_of(Count count) { return counts()[static_cast<int>(count)]; }

}  // namespace emulator

int64_t emulator_cuda_malloc_count() { return count_of(emulator::Count::kAllocations); }
int64_t emulator_bytes_to_host() { return count_of(emulator::Count::kBytesToHost); }

/*!
 * \file shared.cc
 * \brief Where shared variables lie: static ones first, each in a place of its own, then the
 * dynamic one.
 */
#define EMULATOR_RUNTIME
#include "shared.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "device.h"
#include "emulator/shared.h"

__thread char* emulator_static_shared = nullptr;
__thread char* emulator_dynamic_shared = nullptr;
__thread uint64_t emulator_block_number = 0;

namespace emulator {
namespace {

// For all variables of all kernels of a program. Untouched memory costs nothing.
const size_t kStaticSize = 64 << 20;
const size_t kAlignment = 128;

std::mutex mutex;
size_t used = 0;

#ifdef EMULATOR_CHECKED
const size_t kGap = 4096;  // behind each variable, for accesses that miss it
#else
const size_t kGap = 0;
#endif

size_t total() { return kStaticSize + kSharedMemoryOptin + kGap; }

}  // namespace

char* allocate_shared() {
  void* memory =
      mmap(nullptr, total(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

void free_shared(char* memory) {
  if (memory != nullptr) munmap(memory, total());
}

void use_shared(char* memory) {
  emulator_static_shared = memory;
  emulator_dynamic_shared = memory + kStaticSize;
}

size_t shared_total() { return total(); }

size_t dynamic_shared_offset() { return kStaticSize; }

size_t reserve_shared(size_t* place, size_t size, size_t alignment) {
  std::lock_guard<std::mutex> lock(mutex);
  if (*place != 0) return *place;  // another CPU thread was faster
  if (alignment < kAlignment) alignment = kAlignment;
  size_t start = (used + sizeof(uint64_t) + alignment - 1) / alignment * alignment;
  if (start + size > kStaticSize) {
    std::fprintf(stderr, "emulated GPU: more than %zu MB of shared variables\n", kStaticSize >> 20);
    std::abort();
  }
  used = start + size + kGap;
  __atomic_store_n(place, start, __ATOMIC_RELAXED);
  return start;
}

}  // namespace emulator

/*!
 * \file hooks.cc
 * \brief The functions that -fsanitize=thread and -fsanitize=bounds make the compiler call.
 *
 * Their names and arguments are those of the compilers' own runtime libraries, which are not
 * linked.
 */
#include <cstdlib>
#include <cstring>

#include "access.h"
#include "fences.h"
#include "waits.h"

using emulator::checked::Access;
using emulator::checked::access;
using emulator::checked::State;

#define PLACE __builtin_return_address(0)

namespace {

// Volatile reads wait for other blocks; for threads of the block, in loops that do nothing else.
template <size_t size, bool write>
void access_volatile(void* p, const void* place) {
  using namespace emulator::checked;
  const uintptr_t address = reinterpret_cast<uintptr_t>(p);
  State* s = state;
  if (s == nullptr || s->owns(address) || (s->shared.has(address) && !write && !is_waiting(s)))
    return access<size, write>(p, place);
  note_volatile_place(place_of(place));
  s->is_volatile = true;
  access<size, write>(p, place);
  s->is_volatile = false;
  if (!write) note_volatile_read(s);
}

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void* place) {
  if (State* s = emulator::checked::state) s->running.enter(place);
}
void __tsan_func_exit() {
  if (State* s = emulator::checked::state) s->running.leave();
}
// An object with virtual functions gets its table before its members get their values.
void __tsan_vptr_update(void** p, void*) { access<sizeof(void*), true>(p, PLACE); }
void __tsan_vptr_read(void** p) { access<sizeof(void*), false>(p, PLACE); }

#define PLAIN(size)                                                                              \
  void __tsan_read##size(void* p) { access<size, false>(p, PLACE); }                             \
  void __tsan_write##size(void* p) { access<size, true>(p, PLACE); }                             \
  void __tsan_unaligned_read##size(void* p) { access<size, false>(p, PLACE); }                   \
  void __tsan_unaligned_write##size(void* p) { access<size, true>(p, PLACE); }                   \
  void __tsan_volatile_read##size(void* p) { access_volatile<size, false>(p, PLACE); }           \
  void __tsan_volatile_write##size(void* p) { access_volatile<size, true>(p, PLACE); }           \
  void __tsan_unaligned_volatile_read##size(void* p) { access_volatile<size, false>(p, PLACE); } \
  void __tsan_unaligned_volatile_write##size(void* p) { access_volatile<size, true>(p, PLACE); } \
  void __tsan_read_write##size(void* p) {                                                        \
    access<size, false>(p, PLACE);                                                               \
    access<size, true>(p, PLACE);                                                                \
  }                                                                                              \
  void __tsan_unaligned_read_write##size(void* p) {                                              \
    access<size, false>(p, PLACE);                                                               \
    access<size, true>(p, PLACE);                                                                \
  }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
}

namespace {

void access_range(void* ptr, size_t size, Access kind, const void* place) {
  using namespace emulator::checked;
  uintptr_t address = reinterpret_cast<uintptr_t>(ptr);
  State* s = state;
  if (size == 0) return;
  if (s == nullptr) return access_of_host(address, size, kind != Access::kRead, place);
  s->last_place = place;
  if (s->counts) return count_access(s, address, size, kind, place);
  if (s->pending) settle(s, address, kind != Access::kRead);
  if (s->watched) watch_access(s, address, size, kind != Access::kRead, place);
  if (device_region.has(address)) return access_words(s, device_region, address, size, kind, place);
  if (s->shared.has(address)) return access_words(s, s->shared, address, size, kind, place);
  access_elsewhere(s, address, size, kind, place);
}

// An atomic operation, until it is done: what others did before it is known then.
class AtomicAccess {
 public:
  template <typename T>
  AtomicAccess(const volatile T* p, const void* place) {
    access_range(const_cast<T*>(p), sizeof(T), Access::kAtomic, place);
  }
  ~AtomicAccess() {
    if (State* s = emulator::checked::state) emulator::checked::note_atomic(s);
  }
};

}  // namespace

extern "C" {

void __tsan_read_range(void* p, size_t size) { access_range(p, size, Access::kRead, PLACE); }
void __tsan_write_range(void* p, size_t size) { access_range(p, size, Access::kWrite, PLACE); }

void* __tsan_memcpy(void* to, const void* from, size_t size) {
  access_range(const_cast<void*>(from), size, Access::kRead, PLACE);
  access_range(to, size, Access::kWrite, PLACE);
  return __builtin_memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, size_t size) {
  access_range(const_cast<void*>(from), size, Access::kRead, PLACE);
  access_range(to, size, Access::kWrite, PLACE);
  return __builtin_memmove(to, from, size);
}
void* __tsan_memset(void* to, int value, size_t size) {
  access_range(to, size, Access::kWrite, PLACE);
  return __builtin_memset(to, value, size);
}

// g++ leaves copies of a size that it does not know as calls; language.h gives them this name.
void* emulator_memcpy(void* to, const void* from, size_t size) {
  access_range(const_cast<void*>(from), size, Access::kRead, PLACE);
  access_range(to, size, Access::kWrite, PLACE);
  return __builtin_memcpy(to, from, size);
}
void* emulator_memmove(void* to, const void* from, size_t size) {
  access_range(const_cast<void*>(from), size, Access::kRead, PLACE);
  access_range(to, size, Access::kWrite, PLACE);
  return __builtin_memmove(to, from, size);
}
void* emulator_memset(void* to, int value, size_t size) {
  access_range(to, size, Access::kWrite, PLACE);
  return __builtin_memset(to, value, size);
}

#define ATOMIC_UPDATE(bits, T, name)                            \
  T __tsan_atomic##bits##_##name(volatile T* p, T value, int) { \
    AtomicAccess atomic(p, PLACE);                              \
    return __atomic_##name(p, value, __ATOMIC_SEQ_CST);         \
  }

#define ATOMIC(bits, T)                                                                            \
  T __tsan_atomic##bits##_load(const volatile T* p, int) {                                         \
    AtomicAccess atomic(p, PLACE);                                                                 \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile T* p, T value, int) {                                  \
    AtomicAccess atomic(p, PLACE);                                                                 \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                \
  T __tsan_atomic##bits##_exchange(volatile T* p, T value, int) {                                  \
    AtomicAccess atomic(p, PLACE);                                                                 \
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                                \
  ATOMIC_UPDATE(bits, T, fetch_add)                                                                \
  ATOMIC_UPDATE(bits, T, fetch_sub)                                                                \
  ATOMIC_UPDATE(bits, T, fetch_and)                                                                \
  ATOMIC_UPDATE(bits, T, fetch_or)                                                                 \
  ATOMIC_UPDATE(bits, T, fetch_xor)                                                                \
  ATOMIC_UPDATE(bits, T, fetch_nand)                                                               \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* expected, T value, int,      \
                                                    int) {                                         \
    AtomicAccess atomic(p, PLACE);                                                                 \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST,                \
                                       __ATOMIC_SEQ_CST);                                          \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* expected, T value, int, int) { \
    AtomicAccess atomic(p, PLACE);                                                                 \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST,                \
                                       __ATOMIC_SEQ_CST);                                          \
  }                                                                                                \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T value, int, int) {     \
    AtomicAccess atomic(p, PLACE);                                                                 \
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
    return expected;                                                                               \
  }

ATOMIC(8, unsigned char)
ATOMIC(16, unsigned short)
ATOMIC(32, unsigned)
ATOMIC(64, unsigned long)

void __tsan_atomic_thread_fence(int) {
  if (emulator::checked::state != nullptr) emulator::checked::note_fence(emulator::checked::state);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}

// A line that the compiler names, unless it is one of the emulator's headers: then the place tells
// who called it.
static void name_line(emulator::checked::Site* site, const char* file, uint32_t line) {
  if (std::strstr(file, "/emulator/include/") != nullptr) return;
  site->file = file;
  site->line = static_cast<int>(line);
}

/*! \brief A type as the compiler tells it: "'float [32][33]'". */
struct TypeData {
  unsigned short kind, info;
  char name[1];
};

/*! \brief What the compiler knows of an index: where it stands, and of which array. */
struct BoundsData {
  const char* file;
  uint32_t line, column;
  const TypeData *array, *index;
};

// Nothing, if the name is not understood.
static emulator::checked::ArrayType array_type(const TypeData& type) {
  emulator::checked::ArrayType array;
  for (const char* at = std::strchr(type.name, '['); at != nullptr && *at == '[';) {
    char* end = nullptr;
    const size_t size = std::strtoull(at + 1, &end, 10);
    if (size == 0 || *end != ']') return {};
    if (array.count == 0)
      array.dimension = array.count = size;
    else
      array.count *= size;
    at = end + 1;
  }
  return array;
}

void __ubsan_handle_out_of_bounds(BoundsData* data, uintptr_t index) {
  using namespace emulator::checked;
  State* s = state;
  if (s == nullptr) return;
  Finding finding = finding_here(Kind::kRowOverrun, PLACE, 0, false);
  name_line(&finding.at, data->file, data->line);
  finding.detail = "index " + std::to_string(static_cast<int64_t>(index));
  s->overrun.finding = finding;
  s->overrun.array = array_type(*data->array);
  s->overrun.index = static_cast<int64_t>(index);
  s->pending = s->overrun.pending = true;
}
/*! \brief What the compiler knows of a pointer that it uses. */
struct AlignmentData {
  const char* file;
  uint32_t line, column;
  const void* type;
  unsigned char log_alignment, use;
};

void __ubsan_handle_type_mismatch_v1(AlignmentData* data, uintptr_t address) {
  using namespace emulator::checked;
  if (state == nullptr || address < 4096) return;
  state->misaligned = address;
  bool shared = state->shared.has(address);
  Finding finding = finding_here(
      shared ? Kind::kMisalignedAccessShared : Kind::kMisalignedAccessGlobal, PLACE, 0, false);
  name_line(&finding.at, data->file, data->line);
  finding.memory = memory_at(address);
  finding.detail = "it must be a multiple of " + std::to_string(1 << data->log_alignment);
  add_finding(finding);
}
void __ubsan_handle_type_mismatch_v1_abort(AlignmentData* data, uintptr_t address) {
  __ubsan_handle_type_mismatch_v1(data, address);
}

void __ubsan_handle_out_of_bounds_abort(BoundsData* data, uintptr_t index) {
  __ubsan_handle_out_of_bounds(data, index);
}
}

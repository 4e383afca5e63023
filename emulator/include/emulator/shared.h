/*!
 * \file shared.h
 * \brief Shared memory: variables that the threads of a block have in common.
 *
 * A block runs on one thread of the CPU from its start to its end, so each CPU thread has one
 * piece of memory for the shared variables of whichever block it runs. rewrite.py turns
 *
 *   __shared__ float tile[32][33];       extern __shared__ float cache[];
 *
 * into references to places in it:
 *
 *   float (&tile)[32][33] = EMULATOR_SHARED(tile);       float (&cache)[] =
 * EMULATOR_DYNAMIC_SHARED;
 *
 * (thread_local variables would be simpler, but a library that is loaded late may have hardly
 * any of those that are fast.)
 */
#ifndef EMULATOR_SHARED_H_
#define EMULATOR_SHARED_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/language.h"

extern "C" {
/*! \brief This CPU thread's memory for static and for dynamic shared variables. */
extern __thread char* emulator_static_shared EMULATOR_FAST_TLS;
extern __thread char* emulator_dynamic_shared EMULATOR_FAST_TLS;
/*! \brief The number of the running block among those that this CPU thread has run. */
extern __thread uint64_t emulator_block_number EMULATOR_FAST_TLS;
}

namespace emulator {

/*! \brief Finds a place for a variable, the same on all CPU threads, and keeps it in `place`. */
size_t reserve_shared(size_t* place, size_t size, size_t alignment);

#ifdef EMULATOR_CHECKED
/*!
 * \brief A variable's memory for the running block, which the checked build then watches.
 * One that is `by_all` stays the next blocks' too, and is not asked for again.
 */
void* checked_shared_variable(size_t* place, size_t size, size_t alignment, const char* name,
                              bool by_all);
#endif

/*! \brief Whether a number is a constant, else the compiler says why not. */
constexpr bool is_size(size_t) { return true; }

/*! \brief The place of one static shared variable; before it stands the block that uses it. */
class SharedPlace {
 public:
  constexpr SharedPlace() : place_(0) {}

#ifdef EMULATOR_CHECKED
  // Not here, where the compiler would have these accesses checked too.
  template <typename T>
  T& named(const char* name, bool by_all) {
    return *static_cast<T*>(checked_shared_variable(&place_, sizeof(T), alignof(T), name, by_all));
  }
#endif

  template <typename T>
  operator T&() {
    size_t place = __atomic_load_n(&place_, __ATOMIC_RELAXED);
    if (place == 0) place = reserve_shared(&place_, sizeof(T), alignof(T));
    char* memory = emulator_static_shared + place;
    uint64_t* block = reinterpret_cast<uint64_t*>(memory) - 1;
    if (*block != emulator_block_number) {
      // A new block: NaN, so that reading what was never written shows.
      *block = emulator_block_number;
      std::memset(memory, 0xff, sizeof(T));
    }
    return *reinterpret_cast<T*>(memory);
  }

 private:
  size_t place_;  // atomic; <atomic> would be compiled with every kernel
};

/*! \brief Becomes the array that `extern __shared__` declares. */
struct DynamicShared {
  template <typename T>
  operator T&() const {
    return *reinterpret_cast<T*>(emulator_dynamic_shared);
  }
};

}  // namespace emulator

#ifdef EMULATOR_CHECKED

namespace emulator {

/*! \brief A place, and the name of its variable. */
struct NamedPlace {
  SharedPlace& place;
  const char* name;
  bool by_all;

  template <typename T>
  operator T&() const {
    return place.named<T>(name, by_all);
  }
};

}  // namespace emulator

#define EMULATOR_NAMED_SHARED(name, by_all) \
  []() -> ::emulator::NamedPlace {          \
    static ::emulator::SharedPlace place;   \
    return {place, #name, by_all};          \
  }()
#define EMULATOR_SHARED(name) EMULATOR_NAMED_SHARED(name, false)
#define EMULATOR_SHARED_BY_ALL(name) EMULATOR_NAMED_SHARED(name, true)

#else

// A lambda, so that each variable, and each instance of a template's, has its own place.
#define EMULATOR_SHARED(name)             \
  []() -> ::emulator::SharedPlace& {      \
    static ::emulator::SharedPlace place; \
    return place;                         \
  }()
#define EMULATOR_SHARED_BY_ALL(name) EMULATOR_SHARED(name)

#endif
#define EMULATOR_DYNAMIC_SHARED \
  ::emulator::DynamicShared {}

#endif  // EMULATOR_SHARED_H_

/*!
 * \file fibers.h
 * \brief Stacks for threads of the emulated GPU that have to wait.
 */
#ifndef EMULATOR_FIBERS_H_
#define EMULATOR_FIBERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "context.h"

namespace emulator {

/*! \brief A stack, and where the computation on it was suspended. */
struct Fiber {
  Context context;
  char* memory;  // the guard, then the stack
  size_t guard, size;
};

/*! \brief What a thread's local variables may take, as on a GPU. */
const size_t kMostLocal = 512 * 1024;

/*!
 * \brief The fibers of one CPU thread; made as they are needed, and kept.
 *
 * Only pages that are touched take memory. Below each stack lies a guard that no frame reaches
 * across, so that what is too large never becomes another fiber's variables.
 */
class Fibers {
 public:
  /*! \brief Fibers whose stacks hold the local variables of `threads` threads. */
  explicit Fibers(size_t threads) : most_local_(kMostLocal * threads) {}
  ~Fibers();

  /*! \brief A fiber that will call `entry`, or null if there is no memory for it. */
  Fiber* take(void (*entry)());
  void give_back(Fiber* fiber) { free_.push_back(fiber); }
  /*! \brief Takes all fibers back, whatever runs on them. */
  void take_back_all() { free_ = all_; }
  /*! \brief Whether an address lies in a fiber's stack. */
  static bool holds(const Fiber* fiber, uintptr_t address) {
    return fiber != nullptr &&
           address - reinterpret_cast<uintptr_t>(fiber->memory) < fiber->guard + fiber->size;
  }
  /*! \brief Whether an address lies in the guard of a stack. */
  bool is_guard(uintptr_t address) const;

 private:
  Fiber* make();

  const size_t most_local_;
  std::vector<Fiber*> all_, free_;
};

}  // namespace emulator

#endif  // EMULATOR_FIBERS_H_

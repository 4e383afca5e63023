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
  char* memory;  // a guard page, then the stack
};

/*! \brief The fibers of one CPU thread; made as they are needed, and kept. */
class Fibers {
 public:
  static const size_t kStackSize = 128 * 1024;

  /*! rief Bytes of a stack with its guard page. */
  static size_t whole_size();

  ~Fibers();

  /*! \brief A fiber that will call `entry`, or null if there is no memory for it. */
  Fiber* take(void (*entry)());
  void give_back(Fiber* fiber) { free_.push_back(fiber); }
  /*! \brief Takes all fibers back, whatever runs on them. */
  void take_back_all() { free_ = all_; }
  /*! \brief Whether an address lies in a fiber's stack. */
  static bool holds(const Fiber* fiber, uintptr_t address) {
    return fiber != nullptr && address - reinterpret_cast<uintptr_t>(fiber->memory) < whole_size();
  }
  /*! \brief Whether an address lies in the guard page of a stack. */
  bool is_guard(uintptr_t address) const;

 private:
  Fiber* make();

  std::vector<Fiber*> all_, free_;
};

}  // namespace emulator

#endif  // EMULATOR_FIBERS_H_

/*!
 * \file steps.h
 * \brief A program as a back end runs it: one call from Python for all of its kernels.
 */
#ifndef DLSYS_BACKEND_STEPS_H_
#define DLSYS_BACKEND_STEPS_H_

#ifdef _OPENMP
#include <omp.h>
#endif

#include <cstdint>

namespace dlsys {
namespace backend {

/*! \brief One launch: a kernel, its operands, whole numbers and numbers. */
struct Step {
  int (*kernel)(char* const* data, const int64_t* n, const double* number, void* stream);
  char* const* data;
  const int64_t* n;
  const double* number;
};

/*! \brief Executes steps in order, on a CPU with so many threads. Returns the number of the first
 * that failed, or -1. On a GPU they go to a stream. */
inline int64_t run(const Step* steps, int64_t count, [[maybe_unused]] int64_t threads,
                   void* stream) {
#ifdef _OPENMP
  omp_set_num_threads(static_cast<int>(threads));
#endif
  for (int64_t i = 0; i < count; ++i)
    if (steps[i].kernel(steps[i].data, steps[i].n, steps[i].number, stream) != 0) return i;
  return -1;
}

}  // namespace backend
}  // namespace dlsys

#endif  // DLSYS_BACKEND_STEPS_H_

/*!
 * \file error.h
 * \brief The error state: what cudaGetLastError returns.
 *
 * A refused call leaves its error in its own thread until it is read. An error of a kernel that
 * was running is sticky: it stays, for all threads, since nobody can say what the kernel left
 * behind.
 */
#ifndef EMULATOR_ERROR_H_
#define EMULATOR_ERROR_H_

#include <string>

#include "checked.h"
#include "cuda_runtime_api.h"

namespace emulator {

/*! \brief Whether a function of the runtime, or a launch, has been called yet. */
bool runtime_was_called();
/*! \brief Keeps an error for cudaGetLastError, and returns it; `why`, for emulator_failure. */
cudaError_t report(cudaError_t error, const std::string& why = "");

/*! \brief Sets what cudaGetLastError would return; what it would have returned before. */
cudaError_t replace_last_error(cudaError_t error);

/*! \brief The sticky error, or cudaSuccess. */
cudaError_t sticky_error();
/*! \brief Sets it, and prints why; the first one wins. False if there is one already. */
bool set_sticky_error(cudaError_t error, const std::string& why);
void clear_errors();

// What nearly every runtime function begins with: after a sticky error nothing works.
#define EMULATOR_RETURN_IF_STICKY() \
  EMULATOR_HOST_CALL();             \
  if (emulator::sticky_error() != cudaSuccess) return emulator::sticky_error()

}  // namespace emulator

#endif  // EMULATOR_ERROR_H_

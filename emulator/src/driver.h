/*!
 * \file driver.h
 * \brief What every function of the driver begins and ends with.
 */
#ifndef EMULATOR_DRIVER_H_
#define EMULATOR_DRIVER_H_

#include "cuda.h"
#include "error.h"

namespace emulator {

/*! \brief Whether the driver was started, by cuInit or by the runtime. */
bool is_driver_started();

/*! \brief Whether this thread has a context to work in. */
CUresult check_context();

/*! \brief The driver's number of an error of the runtime. */
CUresult driver_error(cudaError_t error);

/*! \brief While one exists, what the runtime reports is not left for cudaGetLastError. */
class Quiet {
 public:
  Quiet() : before_(replace_last_error(cudaSuccess)) {}
  ~Quiet() { replace_last_error(before_); }
  Quiet(const Quiet&) = delete;
  void operator=(const Quiet&) = delete;

 private:
  cudaError_t before_;
};

inline void* address_of(CUdeviceptr ptr) { return reinterpret_cast<void*>(ptr); }

}  // namespace emulator

// The rest of a function of the driver: a call of the runtime that does the same.
#define EMULATOR_DRIVER_CALL(call)                                                 \
  EMULATOR_HOST_CALL();                                                            \
  if (emulator::check_context() != CUDA_SUCCESS) return emulator::check_context(); \
  emulator::Quiet quiet;                                                           \
  return emulator::driver_error(call)

#endif  // EMULATOR_DRIVER_H_

/*!
 * \file variables.h
 * \brief Variables of a program: those that the host sees, and those that kernels see.
 *
 * On a GPU a `__device__` variable is two: one lies in the device's memory, and kernels use it; one
 * of the same name lies in the host's, where no kernel comes. Host code that reads or writes the
 * variable by its name has the second one, and cudaMemcpyFromSymbol and its like are the only way
 * to the first.
 *
 * Here a library that is linked between the two files of `ends/` has its variables twice. The two
 * take turns at the same addresses: while a kernel runs, its own lie there, so what it writes the
 * host does not see, and the other way round. So it is with all variables of CUDA sources, also
 * with those that no kernel could use on a GPU; only `__managed__` ones lie elsewhere.
 */
#ifndef EMULATOR_VARIABLES_H_
#define EMULATOR_VARIABLES_H_

#include <cstddef>
#include <mutex>

namespace emulator {

/*! \brief Has what lies between two addresses from now on twice, with the same values. */
void add_variables(char* begin, char* end);

/*! \brief Has code between two addresses count as that of kernels. */
void add_code_of_kernels(const void* begin, const void* end);
/*! \brief Whether an address is in the code of CUDA sources, as far as it lies together. */
bool is_code_of_kernels(const void* address);

/*! \brief Whether a pointer leads to one of them. */
bool is_variable(const void* ptr);

/*! \brief While one exists, the variables are those of kernels. They may be nested. */
class KernelVariables {
 public:
  explicit KernelVariables(bool wanted = true);
  ~KernelVariables();
  KernelVariables(const KernelVariables&) = delete;
  void operator=(const KernelVariables&) = delete;

 private:
  bool uses_;
};

/*! \brief While one exists, no variables change places. */
class VariablesStay {
 public:
  VariablesStay();

  /*! \brief Where what kernels have at an address lies now: there, if it is no variable. */
  char* of_kernels(const void* ptr) const;

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace emulator

#endif  // EMULATOR_VARIABLES_H_

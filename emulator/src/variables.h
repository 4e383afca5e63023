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
 * with those that no kernel could use on a GPU; only `__managed__` ones lie elsewhere. What the
 * program registers is as the one left it who was at work, the host or kernels.
 */
#ifndef EMULATOR_VARIABLES_H_
#define EMULATOR_VARIABLES_H_

#include <cstddef>
#include <mutex>

namespace emulator {

/*! \brief Has what lies between two addresses from now on twice, with the same values. */
void add_variables(char* begin, char* end);
/*! \brief Forgets what begins there, since its library is closed. */
void drop_variables(const char* begin);

/*! \brief Has memory of the host, if variables lie there, be the kernels' as well. */
void share_variables(void* begin, size_t size);
/*! \brief No longer. */
void part_variables(const void* begin);

/*! \brief Has code between two addresses count as that of kernels. */
void add_code_of_kernels(const void* begin, const void* end);
void drop_code_of_kernels(const void* begin);
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

  /*! \brief Where what kernels, or the host, have at an address lies now: there, if it is no
   * variable. */
  char* place(const void* ptr, bool of_kernels) const;

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace emulator

#endif  // EMULATOR_VARIABLES_H_

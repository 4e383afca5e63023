/*!
 * \file parameters.h
 * \brief What the checked build is told of a program: names of kernels' parameters, and variables.
 */
#ifndef EMULATOR_PARAMETERS_H_
#define EMULATOR_PARAMETERS_H_

namespace emulator {

/*! \brief Made once a kernel, by rewrite.py: its name, and its parameters' with commas. */
struct ParameterNames {
  ParameterNames(const char* kernel, const char* names);
};

/*! \brief Made once a variable of the host, by rewrite.py: where kernels may not come. */
class HostVariable {
 public:
  HostVariable(const volatile void* begin, unsigned long size);
  ~HostVariable();
  HostVariable(const HostVariable&) = delete;
  void operator=(const HostVariable&) = delete;

 private:
  unsigned long begin_;
};

}  // namespace emulator

#endif  // EMULATOR_PARAMETERS_H_

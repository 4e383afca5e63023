/*!
 * \file parameters.h
 * \brief Names of kernels' parameters, for the reports of the checked build.
 */
#ifndef EMULATOR_PARAMETERS_H_
#define EMULATOR_PARAMETERS_H_

namespace emulator {

/*! \brief Made once a kernel, by rewrite.py: its name, and its parameters' with commas. */
struct ParameterNames {
  ParameterNames(const char* kernel, const char* names);
};

}  // namespace emulator

#endif  // EMULATOR_PARAMETERS_H_

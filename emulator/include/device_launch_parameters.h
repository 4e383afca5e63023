/*!
 * \file device_launch_parameters.h
 * \brief threadIdx and its like, which cuda_runtime.h has too.
 */
#ifndef DEVICE_LAUNCH_PARAMETERS_H_
#define DEVICE_LAUNCH_PARAMETERS_H_

#include "emulator/language.h"

#endif  // DEVICE_LAUNCH_PARAMETERS_H_

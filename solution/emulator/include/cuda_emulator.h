/*!
 * \file cuda_emulator.h
 * \brief The emulated GPU's language: everything that a kernel may use.
 */
#ifndef CUDA_EMULATOR_H_
#define CUDA_EMULATOR_H_

#include <assert.h>
#include <stdio.h>

#include "emulator/language.h"

#include "emulator/atomics.h"
#include "emulator/launch.h"
#include "emulator/math.h"
#include "emulator/warp.h"

#endif  // CUDA_EMULATOR_H_

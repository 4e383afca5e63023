/*!
 * \file cuda_emulator.h
 * \brief The emulated GPU's language: everything that a kernel may use.
 */
#ifndef CUDA_EMULATOR_H_
#define CUDA_EMULATOR_H_

// zig c++ -O2 defines it, which nvcc never does; a program may still do so itself.
#undef NDEBUG
#include <assert.h>
#include <stdio.h>

#include "emulator/atomics.h"
#include "emulator/heap.h"
#include "emulator/language.h"
#include "emulator/launch.h"
#include "emulator/math.h"
#include "emulator/settled.h"
#include "emulator/shared.h"
#include "emulator/tensor_cores.h"
#include "emulator/warp.h"

#endif  // CUDA_EMULATOR_H_

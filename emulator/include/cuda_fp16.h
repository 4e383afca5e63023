/*!
 * \file cuda_fp16.h
 * \brief float16: 5 bits of exponent, 10 of mantissa. Each operation rounds once, to nearest.
 */
#ifndef CUDA_FP16_H_
#define CUDA_FP16_H_

// What helper headers look for.
#define __CUDA_FP16_H__

#include "cuda_runtime.h"
#include "emulator/small_float_functions.h"

typedef emulator::SmallFloat<5, 10> __half;
typedef emulator::SmallPair<__half> __half2;
typedef __half half;
typedef __half2 half2;

EMULATOR_SMALL_FLOAT_FUNCTIONS(__half, __half2)
EMULATOR_SMALL_FLOAT_CONVERSIONS(__half, __half2, half)

#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)

#endif  // CUDA_FP16_H_

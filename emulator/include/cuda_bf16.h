/*!
 * \file cuda_bf16.h
 * \brief bfloat16: 8 bits of exponent, 7 of mantissa. Each operation rounds once, to nearest.
 */
#ifndef CUDA_BF16_H_
#define CUDA_BF16_H_

// What helper headers look for.
#define __CUDA_BF16_H__

#include "cuda_runtime.h"
#include "emulator/small_float_functions.h"

typedef emulator::SmallFloat<8, 7> __nv_bfloat16;
typedef emulator::SmallPair<__nv_bfloat16> __nv_bfloat162;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

EMULATOR_SMALL_FLOAT_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
EMULATOR_SMALL_FLOAT_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16)

#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001)

#endif  // CUDA_BF16_H_

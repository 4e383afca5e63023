/*!
 * \file cuda_fp8.h
 * \brief Refused: numbers of 8 bits and less. Written by refused_headers.py.
 */
#error the emulated GPU has no numbers of 8 bits and less (cuda_fp8.h); hint: use __half or __nv_bfloat16, or DEVICE=cuda

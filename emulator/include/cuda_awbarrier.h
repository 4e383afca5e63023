/*!
 * \file cuda_awbarrier.h
 * \brief Refused: split barriers. Written by refused_headers.py.
 */
#error the emulated GPU has no split barriers (cuda_awbarrier.h); hint: use __syncthreads(), or DEVICE=cuda

/*!
 * \file cuda_awbarrier_primitives.h
 * \brief Refused: split barriers. Written by refused_headers.py.
 */
#error the emulated GPU has no split barriers (cuda_awbarrier_primitives.h); hint: use __syncthreads(), or DEVICE=cuda

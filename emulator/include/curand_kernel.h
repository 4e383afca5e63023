/*!
 * \file curand_kernel.h
 * \brief Refused: cuRAND. Written by refused_headers.py.
 */
#error the emulated GPU has no cuRAND (curand_kernel.h); hint: make the numbers on the host, or by a generator of your own in the kernel, or DEVICE=cuda

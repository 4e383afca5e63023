/*!
 * \file curand_kernel.h
 * \brief Refused: random numbers in kernels.
 */
#error the emulated GPU has no cuRAND (curand_kernel.h); hint: make the numbers on the host, or DEVICE=cuda

/*!
 * \file curand.h
 * \brief Refused: random numbers.
 */
#error the emulated GPU has no cuRAND (curand.h); hint: make the numbers on the host, or DEVICE=cuda

/*!
 * \file cufftXt.h
 * \brief Refused: cuFFT. Written by refused_headers.py.
 */
#error the emulated GPU has no cuFFT (cufftXt.h); hint: write the transform as a kernel, or on the host, or DEVICE=cuda

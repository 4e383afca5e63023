/*!
 * \file curand_mtgp32dc_p_11213.h
 * \brief Refused: cuRAND. Written by refused_headers.py.
 */
#error the emulated GPU has no cuRAND (curand_mtgp32dc_p_11213.h); hint: make the numbers on the host, or by a generator of your own in the kernel, or DEVICE=cuda

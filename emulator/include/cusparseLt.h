/*!
 * \file cusparseLt.h
 * \brief Refused: cuSPARSE. Written by refused_headers.py.
 */
#error the emulated GPU has no cuSPARSE (cusparseLt.h); hint: write the sparse product as a kernel, or DEVICE=cuda

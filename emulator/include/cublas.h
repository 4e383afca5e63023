/*!
 * \file cublas.h
 * \brief Refused: cuBLAS of before 2011. Written by refused_headers.py.
 */
#error the emulated GPU has no cuBLAS of before 2011 (cublas.h); hint: include cublas_v2.h, whose functions take a handle, or DEVICE=cuda

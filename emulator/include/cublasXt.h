/*!
 * \file cublasXt.h
 * \brief Refused: cuBLAS over several devices. Written by refused_headers.py.
 */
#error the emulated GPU has no cuBLAS over several devices (cublasXt.h); hint: include cublas_v2.h, or DEVICE=cuda

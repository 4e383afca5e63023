/*!
 * \file cusparse_v2.h
 * \brief Refused: cuSPARSE. Written by refused_headers.py.
 */
#error the emulated GPU has no cuSPARSE (cusparse_v2.h); hint: write the sparse product as a kernel, or DEVICE=cuda

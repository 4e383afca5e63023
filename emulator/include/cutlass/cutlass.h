/*!
 * \file cutlass/cutlass.h
 * \brief Refused: CUTLASS. Written by refused_headers.py.
 */
#error the emulated GPU has no CUTLASS (cutlass/cutlass.h); hint: write the product as a kernel, or DEVICE=cuda

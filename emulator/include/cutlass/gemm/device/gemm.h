/*!
 * \file cutlass/gemm/device/gemm.h
 * \brief Refused: CUTLASS. Written by refused_headers.py.
 */
#error the emulated GPU has no CUTLASS (cutlass/gemm/device/gemm.h); hint: write the product as a kernel, or DEVICE=cuda

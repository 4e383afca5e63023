/*!
 * \file cute/tensor.hpp
 * \brief Refused: CUTLASS. Written by refused_headers.py.
 */
#error the emulated GPU has no CUTLASS (cute/tensor.hpp); hint: write the product as a kernel, or DEVICE=cuda

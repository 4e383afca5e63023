/*!
 * \file cutensor.h
 * \brief Refused: cuTENSOR. Written by refused_headers.py.
 */
#error the emulated GPU has no cuTENSOR (cutensor.h); hint: write the contraction as a kernel, or DEVICE=cuda

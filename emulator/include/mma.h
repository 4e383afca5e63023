/*!
 * \file mma.h
 * \brief Refused: tensor cores. Written by refused_headers.py.
 */
#error the emulated GPU has no tensor cores (mma.h); hint: multiply with plain loops in shared memory, or DEVICE=cuda

/*!
 * \file mma.h
 * \brief Refused: matrix products by whole warps.
 */
#error the emulated GPU has no tensor cores (mma.h); hint: DEVICE=cuda

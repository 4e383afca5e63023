/*!
 * \file cupti.h
 * \brief Refused: CUPTI. Written by refused_headers.py.
 */
#error the emulated GPU has no CUPTI (cupti.h); hint: measure with cudaEventElapsedTime, or DEVICE=cuda

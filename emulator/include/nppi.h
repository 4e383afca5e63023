/*!
 * \file nppi.h
 * \brief Refused: NPP. Written by refused_headers.py.
 */
#error the emulated GPU has no NPP (nppi.h); hint: write the filter as a kernel, or DEVICE=cuda

/*!
 * \file crt/mma.h
 * \brief Refused: header of the compiler's own. Written by refused_headers.py.
 */
#error the emulated GPU has no header of the compiler's own (crt/mma.h); hint: include mma.h, or DEVICE=cuda

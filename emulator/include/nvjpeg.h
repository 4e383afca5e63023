/*!
 * \file nvjpeg.h
 * \brief Refused: nvJPEG. Written by refused_headers.py.
 */
#error the emulated GPU has no nvJPEG (nvjpeg.h); hint: read the picture on the host, or DEVICE=cuda

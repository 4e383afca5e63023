/*!
 * \file cufile.h
 * \brief Refused: cuFile. Written by refused_headers.py.
 */
#error the emulated GPU has no cuFile (cufile.h); hint: read the file on the host, or DEVICE=cuda

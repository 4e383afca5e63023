/*!
 * \file thrust/host_vector.h
 * \brief Refused: Thrust. Written by refused_headers.py.
 */
#error the emulated GPU has no Thrust (thrust/host_vector.h); hint: write the loop as a kernel, or on the host, or DEVICE=cuda

/*!
 * \file thrust/partition.h
 * \brief Refused: Thrust. Written by refused_headers.py.
 */
#error the emulated GPU has no Thrust (thrust/partition.h); hint: write the loop as a kernel, or on the host, or DEVICE=cuda

/*!
 * \file nvshmemx.h
 * \brief Refused: NVSHMEM. Written by refused_headers.py.
 */
#error the emulated GPU has no NVSHMEM (nvshmemx.h); hint: there is one device; work on it alone, or DEVICE=cuda

/*!
 * \file nvshmem.h
 * \brief Refused: NVSHMEM. Written by refused_headers.py.
 */
#error the emulated GPU has no NVSHMEM (nvshmem.h); hint: there is one device; work on it alone, or DEVICE=cuda

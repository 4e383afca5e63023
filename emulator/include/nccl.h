/*!
 * \file nccl.h
 * \brief Refused: NCCL. Written by refused_headers.py.
 */
#error the emulated GPU has no NCCL (nccl.h); hint: there is one device; work on it alone, or DEVICE=cuda

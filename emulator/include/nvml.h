/*!
 * \file nvml.h
 * \brief Refused: NVML. Written by refused_headers.py.
 */
#error the emulated GPU has no NVML (nvml.h); hint: ask cudaGetDeviceProperties, or DEVICE=cuda

/*!
 * \file cub/device/device_radix_sort.cuh
 * \brief Refused: CUB. Written by refused_headers.py.
 */
#error the emulated GPU has no CUB (cub/device/device_radix_sort.cuh); hint: write the reduction or scan as a kernel of your own, or DEVICE=cuda

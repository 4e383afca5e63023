/*!
 * \file cub/warp/warp_scan.cuh
 * \brief Refused: CUB. Written by refused_headers.py.
 */
#error the emulated GPU has no CUB (cub/warp/warp_scan.cuh); hint: write the reduction or scan as a kernel of your own, or DEVICE=cuda

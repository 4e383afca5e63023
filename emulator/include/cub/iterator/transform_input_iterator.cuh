/*!
 * \file cub/iterator/transform_input_iterator.cuh
 * \brief Refused: CUB. Written by refused_headers.py.
 */
#error the emulated GPU has no CUB (cub/iterator/transform_input_iterator.cuh); hint: write the reduction or scan as a kernel of your own, or DEVICE=cuda

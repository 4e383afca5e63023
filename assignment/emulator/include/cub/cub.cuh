/*!
 * \file cub/cub.cuh
 * \brief Refused: CUB, whose kernels are written for NVIDIA's compiler.
 */
#error the emulated GPU has no CUB (cub/cub.cuh); hint: DEVICE=cuda

/*!
 * \file cusolverSp.h
 * \brief Refused: cuSOLVER. Written by refused_headers.py.
 */
#error the emulated GPU has no cuSOLVER (cusolverSp.h); hint: write the solver as kernels, or on the host, or DEVICE=cuda

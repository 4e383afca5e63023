/*!
 * \file optix_stubs.h
 * \brief Refused: OptiX. Written by refused_headers.py.
 */
#error the emulated GPU has no OptiX (optix_stubs.h); hint: write the ray tracer as a kernel, or DEVICE=cuda

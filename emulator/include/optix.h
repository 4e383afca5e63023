/*!
 * \file optix.h
 * \brief Refused: OptiX. Written by refused_headers.py.
 */
#error the emulated GPU has no OptiX (optix.h); hint: write the ray tracer as a kernel, or DEVICE=cuda

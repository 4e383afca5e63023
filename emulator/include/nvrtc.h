/*!
 * \file nvrtc.h
 * \brief Refused: compiler at run time (NVRTC). Written by refused_headers.py.
 */
#error the emulated GPU has no compiler at run time (NVRTC) (nvrtc.h); hint: compile the kernel with the program and launch it by kernel<<<grid, block>>>(), or DEVICE=cuda

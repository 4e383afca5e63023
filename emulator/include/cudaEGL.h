/*!
 * \file cudaEGL.h
 * \brief Refused: pictures shared with OpenGL and its like. Written by refused_headers.py.
 */
#error the emulated GPU has no pictures shared with OpenGL and its like (cudaEGL.h); hint: copy the result to the host and draw it there, or DEVICE=cuda

/*!
 * \file cudnn.h
 * \brief Refused: cuDNN. Written by refused_headers.py.
 */
#error the emulated GPU has no cuDNN (cudnn.h); hint: write the layer as a kernel, or DEVICE=cuda

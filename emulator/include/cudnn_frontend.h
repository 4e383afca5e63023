/*!
 * \file cudnn_frontend.h
 * \brief Refused: cuDNN. Written by refused_headers.py.
 */
#error the emulated GPU has no cuDNN (cudnn_frontend.h); hint: write the layer as a kernel, or DEVICE=cuda

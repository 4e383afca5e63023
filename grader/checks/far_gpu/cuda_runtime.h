/*!
 * \file cuda_runtime.h
 * \brief What cuda_check.cc asks of CUDA, for a library without a GPU: no launch ever fails here.
 */
#ifndef DLSYS_FAR_CUDA_RUNTIME_H_
#define DLSYS_FAR_CUDA_RUNTIME_H_

enum cudaError_t { cudaSuccess = 0 };
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return "no error"; }

#endif  // DLSYS_FAR_CUDA_RUNTIME_H_

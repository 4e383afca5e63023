// What differs between host and device code, and between compilers.
#pragma once

#ifdef __CUDACC__  // nvcc defines __NVCC__ for C++, too
#define PORTABLE __host__ __device__ inline
#define COMPILED_BY_NVCC 1
#else
#define PORTABLE inline
#define COMPILED_BY_NVCC 0
#endif

#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ < 600
#error "needs a GPU of compute capability 6.0 or newer"
#endif
#define ON_DEVICE 1
#else
#define ON_DEVICE 0
#endif

// Where the function runs that calls it.
PORTABLE int where() {
#if defined(__CUDA_ARCH__)
  return __CUDA_ARCH__ / 100;
#else
  return -1;
#endif
}

PORTABLE float fastReciprocalRoot(float x) {
#ifdef __CUDA_ARCH__
  return rsqrtf(x);
#else
  return 1.0f / __builtin_sqrtf(x);
#endif
}

PORTABLE int countBits(unsigned x) {
#if ON_DEVICE
  return __popc(x);
#else
  int n = 0;
  for (; x; x &= x - 1) ++n;
  return n;
#endif
}

int compiledByNvcc();  // in plain.cpp

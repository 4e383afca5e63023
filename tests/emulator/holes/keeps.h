// Kernels that keep something over a barrier, and over the turns of a loop.
#ifndef KEEPS_H_
#define KEEPS_H_

#include "show.h"

#define COMMA ,

#define KERNEL(name, keep, value)                                      \
  __global__ void name##_at_a_barrier(const int* a, int* out, int n) { \
    const int i = threadIdx.x;                                         \
    keep;                                                              \
    __syncthreads();                                                   \
    out[i] = (value);                                                  \
  }                                                                    \
  __global__ void name##_in_chunks(const int* a, int* out, int n) {    \
    const int i = threadIdx.x;                                         \
    keep;                                                              \
    int sum = 0;                                                       \
    for (int j = 0; j < n; ++j) sum += a[j];                           \
    out[i] = sum + (value);                                            \
  }                                                                    \
  static void show_##name() {                                          \
    Device<int> a(counted<int>(33)), out(33);                          \
    name##_at_a_barrier<<<1, 33>>>(a.data, out.data, 5);               \
    show(out);                                                         \
    name##_in_chunks<<<1, 33>>>(a.data, out.data, 5);                  \
    show(out);                                                         \
  }

#endif  // KEEPS_H_

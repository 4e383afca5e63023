// What is named like a constant, or like mathematics, reads memory.
#include "show.h"

enum Mode { kMode };
__device__ int table[64];
__device__ int operator+(Mode, int i) { return table[i]; }

__global__ void of_enum(int* out) {
  int i = threadIdx.x;
  int value = kMode + i;
  table[i] = 7 + i;
  __syncthreads();
  out[i] = value;
}

CASE(operator_of_an_enumeration) {
  Device<int> out(33);
  of_enum<<<1, 33>>>(out.data);
  show(out);
}

namespace mine {
struct Max {
  __device__ int operator()(int a, int b) const { return table[a] + b; }
};
__device__ Max max;

__global__ void of_functor(int* out) {
  int i = threadIdx.x;
  int value = max(i, 2);
  table[i] = 1000 + i;
  __syncthreads();
  out[i] = value;
}
}  // namespace mine

CASE(functor_named_like_mathematics) {
  Device<int> out(33);
  mine::of_functor<<<1, 33>>>(out.data);
  show(out);
}

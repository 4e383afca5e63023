// An operator for an enum, which needs no class.
#include "show.h"

__device__ int calls;
enum Mode { First = 1, Second };
using Kind = Mode;
__device__ int operator+(Kind mode, int n) {
  atomicAdd(&calls, 1);
  return static_cast<int>(mode) + n;
}

__global__ void by_alias(int* out) {
  int x = First + 1;
  __syncthreads();
  out[threadIdx.x] = x;
  __syncthreads();
  if (threadIdx.x == 0) out[32] = calls;
}

CASE(operator_for_an_alias) {
  Device<int> out(33);
  by_alias<<<1, 32>>>(out.data);
  show(out);
}

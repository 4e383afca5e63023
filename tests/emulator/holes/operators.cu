// An operator for which threads wait.
#include "show.h"

struct Number {
  int value;
};
__device__ Number operator^(Number a, int offset) {
  return {a.value + __shfl_xor_sync(0xffffffff, a.value, offset)};
}

__global__ void shuffled(int* out) {
  Number n = {static_cast<int>(threadIdx.x)};
  for (int offset = 16; offset > 0; offset /= 2) n = n ^ offset;
  out[threadIdx.x] = n.value;
}

CASE(operator_that_shuffles) {
  Device<int> out(32);
  shuffled<<<1, 32>>>(out.data);
  show(out);
}

__device__ void meet() { __syncthreads(); }
__device__ Number operator!(Number a) {
  meet();
  return a;
}

__global__ void meets(int* out) {
  __shared__ int all[64];
  all[threadIdx.x] = threadIdx.x;
  Number n = {3};
  n = !n;
  out[threadIdx.x] = all[(threadIdx.x + 1) % blockDim.x] + n.value;
}

CASE(operator_that_waits) {
  Device<int> out(33);
  meets<<<1, 33>>>(out.data);
  show(out);
}

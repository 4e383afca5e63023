// Functions that are called by a variable: which one it is, and what it knows, is not seen.
#include "show.h"

typedef float (*Operation)(float);
__device__ float by_place(float x) { return x * (threadIdx.x + 1); }
__device__ float zero(float) { return 0; }
__device__ Operation table[2] = {by_place, zero};

__global__ void of_table(float factor, int which, float* out) {
  Operation f = table[which];
  out[threadIdx.x] = factor * f(10);
}

CASE(pointer_in_a_product) {
  Device<float> out(33);
  of_table<<<1, 33>>>(2, 0, out.data);
  show(out);
}

template <Operation operation>
__global__ void of_template(float* out) {
  out[threadIdx.x] = operation(10);
}

CASE(pointer_of_a_template) {
  Device<float> out(33);
  of_template<by_place><<<1, 33>>>(out.data);
  show(out);
}

template <auto operation>
__global__ void of_any(float* out) {
  out[threadIdx.x] = (operation)(10);
}

CASE(value_of_a_template) {
  Device<float> out(33);
  of_any<by_place><<<1, 33>>>(out.data);
  show(out);
}

// The first and the last of some threads agree, and those between do not.
#include "show.h"

__global__ void quotient(const float* a, float* out, int n) {
  int i = threadIdx.x;
  int q = threadIdx.x % 5 / 3;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[q * n + k];
  out[i] = sum;
}

CASE(quotient_of_remainder) {
  Device<float> a(counted<float>(16)), out(33);
  quotient<<<1, 33>>>(a.data, out.data, 4);
  show(out);
}

__global__ void quotient_of_row(float* out) {
  int i = threadIdx.x;
  int q = i % 8 / 4;
  out[i] = q;
}

CASE(quotient_of_remainder_in_a_row) {
  Device<float> out(33);
  quotient_of_row<<<1, 33>>>(out.data);
  show(out);
}

// An unsigned number comes around.
__global__ void around(float* out) {
  unsigned q = (threadIdx.x - 2u) / 4294967295u;
  out[threadIdx.x] = q;
}

CASE(quotient_that_comes_around) {
  Device<float> out(33);
  around<<<1, 33>>>(out.data);
  show(out);
}

// An integer that a function rounds.
__device__ float rounded() { return 16777216 + threadIdx.x; }

__global__ void of_float(float* out) {
  int i = rounded();
  out[threadIdx.x] = i - 16777216;
}

CASE(function_that_rounds) {
  Device<float> out(33);
  of_float<<<1, 33>>>(out.data);
  show(out);
}

namespace one {
using number = float;
__global__ void aliased(float* out) {
  number i = 16777216 + threadIdx.x;
  out[threadIdx.x] = i - 16777216;
}
}  // namespace one
namespace two {
using number = int;
}

CASE(alias_of_two_types) {
  Device<float> out(33);
  one::aliased<<<1, 33>>>(out.data);
  show(out);
}

namespace one {
const float base = 16777216;
__global__ void constants(float* out) {
  int i = base + threadIdx.x;
  out[threadIdx.x] = i - 16777216;
}
}  // namespace one
namespace two {
const int base = 3;
}

CASE(constant_of_two_types) {
  Device<float> out(33);
  one::constants<<<1, 33>>>(out.data);
  show(out);
}

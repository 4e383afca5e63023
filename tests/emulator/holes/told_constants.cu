// Operators and constructors that tell a constant from a variable.
#include "show.h"

struct Number {
  int value;
};
__device__ int operator^(Number, int& count) {
  const int before = count;
  count += 2;
  return before;
}
__device__ int operator^(Number, const int& count) { return -count; }

__global__ void by_counter(int n, int* out) {
  Number number{0};
  int sum = 0;
  for (int i = 0; i < n; i++) {
    __syncthreads();
    sum += number ^ i;
  }
  out[threadIdx.x] = sum;
}

CASE(counter_of_a_loop) {
  Device<int> out(33);
  by_counter<<<1, 33>>>(6, out.data);
  show(out);
}

struct Made {
  int kind;
  __device__ Made(int&) : kind(1) {}
  __device__ Made(const int&) : kind(2) {}
};
__device__ int kind_of(Made made) { return made.kind; }

__global__ void by_conversion(int n, int* out) { out[threadIdx.x] = kind_of(n); }

CASE(parameter_that_is_converted) {
  Device<int> out(33);
  by_conversion<<<1, 33>>>(3, out.data);
  show(out);
}

typedef float2& Reference;
struct Pair {
  float2 first;
};
__device__ int operator+(Reference, int) { return 1; }
__device__ int operator+(const float2&, int) { return 2; }

__global__ void by_typedef(Pair pair, int* out) { out[threadIdx.x] = pair.first + 1; }

CASE(reference_that_is_a_typedef) {
  Device<int> out(33);
  by_typedef<<<1, 33>>>(Pair{{1, 2}}, out.data);
  show(out);
}

enum Sign { Plus, Minus };
struct Signs {
  Sign sign;
};
__device__ int operator-(Sign&, int) { return 1; }
__device__ int operator-(const Sign&, int) { return 2; }

__global__ void by_member(Signs signs, int* out) { out[threadIdx.x] = signs.sign - 1; }

CASE(operator_for_a_member) {
  Device<int> out(33);
  by_member<<<1, 33>>>(Signs{Plus}, out.data);
  show(out);
}

// A name in a value that is computed again means something else where that happens.
#include "show.h"

// A loop's counter hides a parameter.
__global__ void by_loop(int n, const float* a, float* out) {
  int j = threadIdx.x * n;
  float sum = 0;
  for (int n = 0; n < 4; ++n) sum += a[j + n];
  out[threadIdx.x] = sum;
}

CASE(hidden_by_a_loop) {
  Device<float> a(counted<float>(256)), out(33);
  by_loop<<<1, 33>>>(3, a.data, out.data);
  show(out);
}

// A variable of an inner block hides a parameter.
__global__ void by_block(int n, int* out) {
  int j = n + threadIdx.x;
  {
    int n = 5;
    __syncthreads();
    out[j] = n + j;
  }
}

CASE(hidden_by_a_block) {
  Device<int> out(std::vector<int>(64));
  by_block<<<1, 33>>>(2, out.data);
  show(out);
}

// A local variable hides a constant of the program.
const int width = 3;

__global__ void of_constant(const float* a, float* out) {
  int j = threadIdx.x * width;
  float sum = 0;
  for (int width = 0; width < 4; ++width) sum += a[j + width];
  out[threadIdx.x] = sum;
}

CASE(hidden_constant) {
  Device<float> a(counted<float>(256)), out(33);
  of_constant<<<1, 33>>>(a.data, out.data);
  show(out);
}

// Names that the parser does not see declared: structured bindings, and brackets around a name.
struct Pair {
  int first, second;
};

__global__ void bound(int n, const int* a, int* out) {
  int i = threadIdx.x;
  if (i < n) {
    auto [i, n] = Pair{a[threadIdx.x], 9};
    if (i < n) out[threadIdx.x] = i;
  }
}

CASE(structured_binding) {
  std::vector<int> values = counted<int>(32);
  for (int& value : values) value = value * 7 % 13;
  Device<int> a(values), out(std::vector<int>(32));
  bound<<<1, 32>>>(32, a.data, out.data);
  show(out);
}

__global__ void bound_across(int* out) {
  int low = 100;
  {
    auto [low, high] = Pair{static_cast<int>(threadIdx.x), 9};
    out[threadIdx.x] = high;
    __syncthreads();
    out[threadIdx.x] += low;
  }
  out[threadIdx.x] += low;
}

CASE(structured_binding_across_a_barrier) {
  Device<int> out(std::vector<int>(32));
  bound_across<<<1, 32>>>(out.data);
  show(out);
}

const int x = 50;

__global__ void in_brackets(int* out) {
  int(x) = threadIdx.x;
  out[threadIdx.x] = x;
  __syncthreads();
  out[threadIdx.x] += x;
}

CASE(declared_in_brackets) {
  Device<int> out(std::vector<int>(32));
  in_brackets<<<1, 32>>>(out.data);
  show(out);
}

template <typename T>
__global__ void of_type(T* out) {
  T(x) = threadIdx.x;
  out[threadIdx.x] = x;
  __syncthreads();
  out[threadIdx.x] += x;
}

CASE(declared_in_brackets_of_a_template) {
  Device<int> out(std::vector<int>(32));
  of_type<<<1, 32>>>(out.data);
  show(out);
}

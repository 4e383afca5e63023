// What is told apart from a constant: operators and conversions of an object.
#include "show.h"

struct Table {
  int v;
  __device__ int operator[](int) { return v; }
  __device__ int operator[](int) const { return v + 100; }
};
struct Number {
  int v;
  __device__ operator int() { return v; }
  __device__ operator int() const { return v + 100; }
};
struct Sum {
  int v;
  __device__ int operator+(int x) { return v + x; }
  __device__ int operator+(int x) const { return v + x + 100; }
};
struct Holder {
  Sum sum;
  Table tables[2];
};
__device__ int same(int x) { return x; }

#define KERNEL(name, T, value)                  \
  __global__ void name(int* out, T a) {         \
    __shared__ int s[33];                       \
    s[threadIdx.x] = threadIdx.x;               \
    __syncthreads();                            \
    out[threadIdx.x] = s[32 - threadIdx.x] + (value); \
  }                                             \
  __global__ void name##_plain(int* out, T a) { out[threadIdx.x] = (value); }

KERNEL(by_index, Table, a[3])
KERNEL(by_argument, Number, same(a))
KERNEL(by_member, Holder, a.sum + 2)
KERNEL(by_element, Holder, a.tables[1][2])
__global__ void by_initial(int* out, Number a) {
  const int x = a;
  __syncthreads();
  int y = a;
  out[threadIdx.x] = x + y;
}

CASE(operators_of_objects) {
  Device<int> out(33), more(33);
  by_index<<<1, 33>>>(out.data, Table{1});
  show(out);
  by_index_plain<<<1, 33>>>(more.data, Table{1});
  show(more);
}

CASE(conversions_of_objects) {
  Device<int> out(33), more(33), last(33);
  by_argument<<<1, 33>>>(out.data, Number{1});
  show(out);
  by_argument_plain<<<1, 33>>>(more.data, Number{1});
  show(more);
  by_initial<<<1, 33>>>(last.data, Number{1});
  show(last);
}

CASE(operators_of_members) {
  Device<int> out(33), more(33);
  by_member<<<1, 33>>>(out.data, Holder{{1}, {{2}, {3}}});
  show(out);
  by_member_plain<<<1, 33>>>(more.data, Holder{{1}, {{2}, {3}}});
  show(more);
  by_element<<<1, 33>>>(out.data, Holder{{1}, {{2}, {3}}});
  show(out);
  by_element_plain<<<1, 33>>>(more.data, Holder{{1}, {{2}, {3}}});
  show(more);
}

struct Parts {
  float numbers[4];
  float3 vector;
  int count;
};
__device__ float pick(float* p) { return p[1]; }
__device__ float pick(const float* p) { return -p[1]; }
template <class T>
struct Constness {
  static const int value = 1;
};
template <class T>
struct Constness<const T> {
  static const int value = 2;
};
template <class T>
__device__ float kind(T*) {
  return Constness<T>::value;
}
__device__ float operator+(float3&, int) { return 1; }
__device__ float operator+(const float3&, int) { return 2; }
__global__ void by_pointer(float* out, Parts p) { out[threadIdx.x] = pick(p.numbers); }
__global__ void by_sum(float* out, Parts p) { out[threadIdx.x] = pick(p.numbers + 0); }
__global__ void by_template(float* out, Parts p) { out[threadIdx.x] = kind(p.numbers); }
__global__ void by_variable(float* out, Parts p) {
  auto q = p.numbers;
  out[threadIdx.x] = pick(q);
}
__global__ void by_operator(float* out, Parts p) { out[threadIdx.x] = p.vector + p.count; }

CASE(arrays_and_vectors_of_objects) {
  const Parts parts = {{1, 3, 5, 7}, {1, 2, 3}, 4};
  Device<float> out(33);
  by_pointer<<<1, 33>>>(out.data, parts);
  show(out);
  by_sum<<<1, 33>>>(out.data, parts);
  show(out);
  by_template<<<1, 33>>>(out.data, parts);
  show(out);
  by_variable<<<1, 33>>>(out.data, parts);
  show(out);
  by_operator<<<1, 33>>>(out.data, parts);
  show(out);
}

__device__ bool operator==(const float2 a, float2& b) { return a.x == b.x; }
__device__ bool operator==(const float2 a, const float2& b) { return a.x != b.x; }
struct Two {
  float2 a, b;
};
__global__ void by_comparison(float* out, Two two) { out[threadIdx.x] = two.a == two.b; }

CASE(comparisons_of_members) {
  Device<float> out(33);
  by_comparison<<<1, 33>>>(out.data, Two{{1, 2}, {1, 2}});
  show(out);
}

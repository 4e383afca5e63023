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

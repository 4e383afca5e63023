// What lives longer than the statements that name it.
#include "show.h"

__global__ void by_address(const int* a, int* out) {
  int x = a[threadIdx.x];
  int* p = &x;
  __syncthreads();
  out[threadIdx.x] = *p;
}

CASE(address_across_a_barrier) {
  Device<int> a(counted<int>(33)), out(33);
  by_address<<<1, 33>>>(a.data, out.data);
  show(out);
}

__global__ void by_array(const int* a, int* out) {
  int x[4] = {a[threadIdx.x], 2, 3, 4};
  int* p = x + 1;
  __syncthreads();
  out[threadIdx.x] = p[-1] + p[0];
}

CASE(array_across_a_barrier) {
  Device<int> a(counted<int>(33)), out(33);
  by_array<<<1, 33>>>(a.data, out.data);
  show(out);
}

__global__ void by_array_in_loop(const float* a, float* out, int n) {
  float x[2] = {a[threadIdx.x], 2};
  const float* p = x;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += p[0] + a[k];
  out[threadIdx.x] = sum;
}

CASE(array_across_a_loop) {
  Device<float> a(counted<float>(33)), out(33);
  by_array_in_loop<<<1, 33>>>(a.data, out.data, 5);
  show(out);
}

struct Holder {
  int* p;
};

__global__ void by_struct(const int* a, int* out) {
  int x = a[threadIdx.x];
  Holder h = {&x};
  __syncthreads();
  out[threadIdx.x] = *h.p;
}

CASE(struct_with_an_address) {
  Device<int> a(counted<int>(33)), out(33);
  by_struct<<<1, 33>>>(a.data, out.data);
  show(out);
}

struct Reference {
  int* p;
  __device__ explicit Reference(int& x) : p(&x) {}
  __device__ void add(int n) { *p += n; }
};

__global__ void by_constructor(const int* a, int* out) {
  int x = a[threadIdx.x];
  Reference r(x);
  __syncthreads();
  r.add(1);
  out[threadIdx.x] = *r.p;
}

CASE(constructor_with_a_reference) {
  Device<int> a(counted<int>(33)), out(33);
  by_constructor<<<1, 33>>>(a.data, out.data);
  show(out);
}

template <typename R>
__global__ void by_template(const int* a, int* out) {
  int x = a[threadIdx.x];
  R r(x);
  __syncthreads();
  r.add(1);
  __syncthreads();
  out[threadIdx.x] = x;
}

CASE(template_with_a_reference) {
  Device<int> a(counted<int>(33)), out(33);
  by_template<Reference><<<1, 33>>>(a.data, out.data);
  show(out);
}

struct Itself {
  int value, *p;
  __device__ void start(int n) {
    value = n;
    p = &value;
  }
};

template <typename T>
__global__ void of_itself(const int* a, int* out) {
  T t;
  t.start(a[threadIdx.x]);
  __syncthreads();
  *t.p += 5;
  __syncthreads();
  out[threadIdx.x] = t.value;
}

CASE(struct_with_its_own_address) {
  Device<int> a(counted<int>(33)), out(33);
  of_itself<Itself><<<1, 33>>>(a.data, out.data);
  show(out);
}

// It has a value though none is written there.
struct Begun {
  int value = 7;
};

__global__ void begun(int* out) {
  Begun b;
  b.value += threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = b.value;
}

CASE(member_with_an_initial_value) {
  Device<int> out(33);
  begun<<<1, 33>>>(out.data);
  show(out);
}

__global__ void begun_array(int* out) {
  Begun b[2];
  b[1].value += threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = b[0].value + b[1].value;
}

CASE(array_with_initial_values) {
  Device<int> out(33);
  begun_array<<<1, 33>>>(out.data);
  show(out);
}

__global__ void begun_loop(const float* a, float* out, int n) {
  Begun b;
  for (int k = 0; k < n; ++k) b.value += static_cast<int>(a[k]);
  out[threadIdx.x] = b.value;
}

CASE(initial_value_before_a_loop) {
  Device<float> a(counted<float>(33)), out(33);
  begun_loop<<<1, 33>>>(a.data, out.data, 4);
  show(out);
}

// Casts that take const away.
__global__ void cast_away(int n, int* out) {
  int x = threadIdx.x;
  ((int&)x) += n;
  int y = n;
  const_cast<int&>(y) += 3;
  __syncthreads();
  out[threadIdx.x] = x + y;
}

CASE(cast_to_a_reference) {
  Device<int> out(33);
  cast_away<<<1, 33>>>(100, out.data);
  show(out);
}

using IntReference = int&;

__global__ void cast_by_name(int n, int* out) {
  int x = threadIdx.x;
  ((IntReference)x) += n;
  __syncthreads();
  out[threadIdx.x] = x;
}

CASE(cast_to_a_named_reference) {
  Device<int> out(33);
  cast_by_name<<<1, 33>>>(100, out.data);
  show(out);
}

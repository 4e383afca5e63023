// Addresses of variables that no word near their names gives away, and constants that casts change.
#include <type_traits>
#include <utility>

#include "keeps.h"

using Taken = std::add_lvalue_reference_t<int>;
template <typename T>
using Alias = T&;
struct Named {
  typedef int& type;
};

struct Reference {
  int& to;
};
struct Pointer {
  int* to;
  Pointer() = default;
  __host__ __device__ Pointer(int& x) : to(&x) {}
};
template <int N>
struct Numbered {
  int* to;
  __host__ __device__ Numbered(int& x) : to(&x) {}
};
struct Nested {
  Pointer inner;
  __device__ void set(Pointer p) { inner = p; }
};
using Other = Pointer;

__device__ Pointer kept[33];
__device__ Nested nested[33];

__device__ int* of_reference(int& x) { return &x; }
__device__ int* of_taken(Taken x) { return &x; }
__device__ int* of_alias(Alias<int> x) { return &x; }
__device__ int* of_pointer(Pointer p) { return p.to; }
__device__ int* operator+(Pointer, Pointer right) { return right.to; }
template <typename T>
__device__ int* of_typename(typename T::type x) {
  return &x;
}
template <typename T>
__device__ int* of_any(T x) {
  return &x;
}
template <typename T>
__device__ int* of_class(T x) {
  return x.to;
}

KERNEL(shifted, int x = a[i]; int* p = &(x >>= 1), *p)
KERNEL(
    reference_to_shifted, int x = a[i]; int* p; {
      int& r = (x >>= 1);
      p = &r;
    },
                                                *p)
KERNEL(cast_to_a_constant_pointer, int x = a[i]; int* p = (int* const)&x, *p)
KERNEL(cast_to_a_restricted_pointer, int x = a[i]; int* p = (int* __restrict__)&x, *p)
KERNEL(cast_by_a_name, int x = a[i]; int* p = (std::add_pointer_t<int>)&x, *p)
KERNEL(written_through, int x = i; int* p = (int* const)&x; *p = 5 + i, x)
KERNEL(counted_by_a_cast, int x = i; --(Taken)x, x)
KERNEL(address_of_a_cast, int x = a[i]; int* p = &(Taken)x, *p)
KERNEL(cast_in_a_call, int x = a[i]; int* p = of_reference(static_cast<Taken>(x)), *p)
KERNEL(member_of_a_list, int x = a[i]; int* p = &Reference{x}.to, *p)
KERNEL(member_of_a_class, int x = a[i]; int* p = Numbered<3>{x}.to, *p)
KERNEL(cast_to_a_class, int x = a[i]; int* p = static_cast<Numbered<3>>(x).to, *p)
KERNEL(converted, int x = a[i]; int* p = of_pointer(x), *p)
KERNEL(converted_list, int x = a[i]; int* p = of_pointer({x}), *p)
KERNEL(converted_by_assignment, int x = a[i]; kept[i] = x, *kept[i].to)
KERNEL(converted_operand, int x = a[i]; int* p = kept[i] + x, *p)
KERNEL(converted_for_a_member, int x = a[i]; nested[i].set(x), *nested[i].inner.to)
KERNEL(converted_by_a_template, int x = a[i]; int* p = of_class<Pointer>(x), *p)
KERNEL(parameter_by_a_name, int x = a[i]; int* p = of_taken(x), *p)
KERNEL(parameter_by_an_alias, int x = a[i]; int* p = of_alias(x), *p)
KERNEL(parameter_by_a_member, int x = a[i]; int* p = of_typename<Named>(x), *p)
KERNEL(parameter_by_an_argument, int x = a[i]; int* p = of_any<Taken>(x), *p)
KERNEL(
    object_in_a_branch, int x = a[i]; int* p = nullptr; if (i >= 0) {
      auto r = Reference{x};
      p = &r.to;
    },
                                                        *p)
KERNEL(object_in_a_loop, int x = a[i]; int* p = nullptr; for (auto r = Reference{x}; !p;) p = &r.to;
       , *p)
KERNEL(
    object_by_another_name, int x = a[i]; int* p = nullptr; if (i >= 0) {
      Other r;
      r = x;
      p = r.to;
    },
                                                            *p)

CASE(shifted) { show_shifted(); }
CASE(reference_to_shifted) { show_reference_to_shifted(); }
CASE(cast_to_a_constant_pointer) { show_cast_to_a_constant_pointer(); }
CASE(cast_to_a_restricted_pointer) { show_cast_to_a_restricted_pointer(); }
CASE(cast_by_a_name) { show_cast_by_a_name(); }
CASE(written_through) { show_written_through(); }
CASE(counted_by_a_cast) { show_counted_by_a_cast(); }
CASE(address_of_a_cast) { show_address_of_a_cast(); }
CASE(cast_in_a_call) { show_cast_in_a_call(); }
CASE(member_of_a_list) { show_member_of_a_list(); }
CASE(member_of_a_class) { show_member_of_a_class(); }
CASE(cast_to_a_class) { show_cast_to_a_class(); }
CASE(converted) { show_converted(); }
CASE(converted_list) { show_converted_list(); }
CASE(converted_by_assignment) { show_converted_by_assignment(); }
CASE(converted_operand) { show_converted_operand(); }
CASE(converted_for_a_member) { show_converted_for_a_member(); }
CASE(converted_by_a_template) { show_converted_by_a_template(); }
CASE(parameter_by_a_name) { show_parameter_by_a_name(); }
CASE(parameter_by_an_alias) { show_parameter_by_an_alias(); }
CASE(parameter_by_a_member) { show_parameter_by_a_member(); }
CASE(parameter_by_an_argument) { show_parameter_by_an_argument(); }
CASE(object_in_a_branch) { show_object_in_a_branch(); }
CASE(object_in_a_loop) { show_object_in_a_loop(); }
CASE(object_by_another_name) { show_object_by_another_name(); }

__global__ void changed_by_a_name(int* out, int n, int m) {
  const int i = threadIdx.x;
  const_cast<Taken>(n) += i;
  ((Taken)m) -= i;
  out[i] = 1000 * n + m;
}

CASE(parameters_changed_by_casts) {
  Device<int> out(33);
  changed_by_a_name<<<1, 33>>>(out.data, 80, 500);
  show(out);
}

template <typename T>
__global__ void changed_in_a_template(int* out, int n) {
  const int i = threadIdx.x;
  const_cast<T>(n) += i;
  out[i] = n;
}

template <typename T>
__global__ void counter_of_a_template(int* out) {
  int x = threadIdx.x;
  for (int q = 0; q < 4; ++q) {
    __syncthreads();
    const_cast<T>(q) += 1;
    x += 1;
  }
  out[threadIdx.x] = x;
}

template <typename T>
__global__ void kept_in_a_template(int* out) {
  int x = out[threadIdx.x];
  int* p = nullptr;
  if (x >= 0) {
    T r = x;
    p = &r;
  }
  __syncthreads();
  out[threadIdx.x] = *p;
}

CASE(templates_of_references) {
  Device<int> out(counted<int>(33));
  changed_in_a_template<int&><<<1, 33>>>(out.data, 80);
  show(out);
  counter_of_a_template<int&><<<1, 33>>>(out.data);
  show(out);
  kept_in_a_template<int&><<<1, 33>>>(out.data);
  show(out);
}

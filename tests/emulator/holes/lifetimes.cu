// Addresses of variables that are kept in many ways, and objects that do something when they end.
#include <cstdint>

#include "keeps.h"

struct Array {
  int at[4];
};
struct Pair {
  Array arrays[2];
  int count;
};
struct Reference {
  int& to;
};
struct View {
  const int& to;
};
using Taken = const int&;

__device__ const int* address(Taken value) { return &value; }

KERNEL(in_parentheses, int x = 3 * i; const int* p = &(x), *p)
KERNEL(element_in_parentheses, int x[2] = {i COMMA 2 * i}; int* p = &(x[1]), *p)
KERNEL(after_counting, int x = 3 * i; int* p = &++x, *p)
KERNEL(chosen, int x = 3 * i; int y = 1; int* p = &(i > 2 ? x : y), *p)
KERNEL(member_array, Array x{{i COMMA 2 COMMA 3 COMMA 4}}; int* p = x.at, p[0])
KERNEL(array_of_a_member, Pair x; x.arrays[1].at[2] = i; int* p = x.arrays[1].at, p[2])
KERNEL(array_of_objects, Pair x[2]; x[1].arrays[1].at[2] = i; Array* p = x[1].arrays, p[1].at[2])
KERNEL(pointer_of_an_array, int* q[2] = {out COMMA out + 1}; int** p = &q[1], *p - out + i)
KERNEL(integer, int x = 7 * i; unsigned long long p = (unsigned long long)&x, *(int*)p)
KERNEL(named_integer, int x = 7 * i; auto p = (std::uintptr_t)&x, *(int*)p)
KERNEL(reference_member, int x = a[i]; Reference r{++x}, r.to)
KERNEL(reference_to_what_was_assigned, int x = 0; Reference r{x = 2 * a[i]}, r.to)
KERNEL(reference_to_what_was_chosen, const int x = a[i]; View r{i == 5 ? x : x}, r.to)
KERNEL(reference_by_a_name, int x = 7 * i; const int* p = address(x), *p)
KERNEL(changed_by_a_cast, int x = n; int* p = (int*)&(x); *p = n + i, x)
KERNEL(changed_by_an_atomic, int x = n; atomicAdd((int*)&(x)COMMA i), x)

CASE(in_parentheses) { show_in_parentheses(); }
CASE(element_in_parentheses) { show_element_in_parentheses(); }
CASE(after_counting) { show_after_counting(); }
CASE(chosen) { show_chosen(); }
CASE(member_array) { show_member_array(); }
CASE(array_of_a_member) { show_array_of_a_member(); }
CASE(array_of_objects) { show_array_of_objects(); }
CASE(pointer_of_an_array) { show_pointer_of_an_array(); }
CASE(integer) { show_integer(); }
CASE(named_integer) { show_named_integer(); }
CASE(reference_member) { show_reference_member(); }
CASE(reference_to_what_was_assigned) { show_reference_to_what_was_assigned(); }
CASE(reference_to_what_was_chosen) { show_reference_to_what_was_chosen(); }
CASE(reference_by_a_name) { show_reference_by_a_name(); }
CASE(changed_by_a_cast) { show_changed_by_a_cast(); }
CASE(changed_by_an_atomic) { show_changed_by_an_atomic(); }

__global__ void moving(int* out, int n) {
  int x = n;
  View r{x};
  __syncthreads();
  x = 9;
  __syncthreads();
  out[threadIdx.x] = r.to;
}

CASE(reference_to_what_moves) {
  Device<int> out(33);
  moving<<<1, 33>>>(out.data, 4);
  show(out);
}

struct Guard {
  int* at;
  int value;
  __device__ ~Guard() { *at = value; }
};
struct Holder {
  Guard guard;
};
typedef Guard Named;

__device__ Guard guard_of(int* at, int value) { return {at, value}; }

#define GUARDED(name, guard)                      \
  __global__ void name##_at_a_barrier(int* out) { \
    const int i = threadIdx.x;                    \
    guard;                                        \
    __syncthreads();                              \
    out[i] = 5;                                   \
  }                                               \
  static void show_##name() {                     \
    Device<int> out(33);                          \
    name##_at_a_barrier<<<1, 33>>>(out.data);     \
    show(out);                                    \
  }

GUARDED(guard_by_auto, auto g = guard_of(&out[i], 100 + i))
GUARDED(guard_by_another_name, Named g{&out[i] COMMA 200 + i})
GUARDED(guard_in_an_object, Holder g{{&out[i] COMMA 300 + i}})
GUARDED(guard_by_reference, const auto& g = guard_of(&out[i], 400 + i))

CASE(guard_by_auto) { show_guard_by_auto(); }
CASE(guard_by_another_name) { show_guard_by_another_name(); }
CASE(guard_in_an_object) { show_guard_in_an_object(); }
CASE(guard_by_reference) { show_guard_by_reference(); }

template <typename T>
__global__ void guard_of_a_template(int* out) {
  T g{&out[threadIdx.x], 500};
  __syncthreads();
  out[threadIdx.x] = 5;
}

CASE(guard_by_a_template) {
  Device<int> out(33);
  guard_of_a_template<Guard><<<1, 33>>>(out.data);
  show(out);
}

// Threads that have left divide no more.
__global__ void some_leave(int* out) {
  __shared__ int s[33];
  const int i = threadIdx.x, d = i % 4;
  if (d == 0) return;
  int q = 100 / d;
  s[i] = q;
  __syncthreads();
  out[i] = s[i] + q;
}

CASE(division_behind_a_return) {
  Device<int> out(counted<int>(33));
  some_leave<<<1, 33>>>(out.data);
  show(out);
}

// Overloads of which some know their thread: the one that is meant must be called.
#include <cstring>

#include "show.h"

__device__ int one(int x) { return x; }
__device__ int one(float x) { return 100 + x + threadIdx.x; }

template <class T>
__device__ int wide(T x) {
  return sizeof(x) + threadIdx.x;
}
__device__ int wide(int x) { return 1000 + x; }

// Not marked, and chosen for a variable only, or for integers.
constexpr int plain(int& x) { return x; }
__device__ int plain(const int& x) { return 100 + x + threadIdx.x; }
constexpr int whole(int x) { return x; }
__device__ int whole(double x) { return 100 + x + threadIdx.x; }

// <strings.h> has one for text and an int.
__device__ const char* index(const char* text, long n) { return text + n + threadIdx.x; }
// CUDA has one for ints.
__device__ double max(double a, double b) { return a + b + threadIdx.x; }

// These take the index of a thread, too.
struct Any {
  template <class T>
  __host__ __device__ constexpr Any(const T&) {}
};
__device__ int few(int x, int y) { return x + y + threadIdx.x; }
template <class... A>
constexpr int few(const A&...) {
  return sizeof...(A);
}
__device__ int lone(long x) { return x + threadIdx.x; }
constexpr int lone(Any, int x) { return 1000 + x; }

namespace a {
__device__ int place(int x) { return x + threadIdx.x; }
}  // namespace a
namespace b {
constexpr int place(int x) { return 1000 + x; }
namespace a {
using namespace ::a;
constexpr int place(int x) { return 2000 + x; }
}  // namespace a
__global__ void places(int* out) { out[threadIdx.x] = place(1) + 10000 * a::place(2); }
}  // namespace b

__device__ int nested(int x) { return one(one(x) + 1.5f) + a::place(wide(x)); }

#define COMPUTES(name, ...) \
  __global__ void of_##name(int* out) { \
    int i = threadIdx.x; \
    out[threadIdx.x] = __VA_ARGS__; \
  } \
  CASE(name) { \
    Device<int> out(33); \
    of_##name<<<1, 33>>>(out.data); \
    show(out); \
  }
COMPUTES(of_which_one_knows, one(1) + 1000 * one(2.5f))
COMPUTES(a_template_beside_a_function, wide(1) + wide(1L))
COMPUTES(one_for_variables, plain(i))
constexpr int plainer(int& x) { return x; }
__device__ int plainer(const int& x) { return 100 + x; }
__global__ void of_parameters(int* out, int n) { out[threadIdx.x] = plain(n) + plainer(n); }
CASE(one_for_parameters) {
  Device<int> out(33);
  of_parameters<<<1, 33>>>(out.data, 3);
  show(out);
}
COMPUTES(one_that_is_not_marked, whole(1))
COMPUTES(one_of_the_system, index("abc", 1) != nullptr)
COMPUTES(one_of_cuda, max(1, 2) + max(1.0, 2.0))
COMPUTES(one_that_takes_all, few(1, 2) + few(1L, 2L))
COMPUTES(one_that_takes_anything, lone(1))
COMPUTES(in_namespaces, a::place(1) + b::place(1) + b::a::place(1))
COMPUTES(calls_in_calls, nested(i) + one(wide(one(2))))

CASE(in_other_namespaces) {
  Device<int> out(33);
  b::places<<<1, 33>>>(out.data);
  show(out);
}

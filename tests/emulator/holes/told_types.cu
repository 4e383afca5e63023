// Constants that are told by a type that a template deduces, or by another class of one name.
#include "show.h"

struct Sum {
  template <typename T>
  __device__ int operator%(T& value) {
    return value = value + 1;
  }
  template <typename T>
  __device__ int operator%(const T&) {
    return 99;
  }
};

__global__ void by_template(int* out) {
  Sum sum;
  int x = threadIdx.x;
  __syncthreads();
  const int y = sum % x;
  __syncthreads();
  out[threadIdx.x] = 100 * y + x;
}

CASE(operator_of_any_type) {
  Device<int> out(33);
  by_template<<<1, 33>>>(out.data);
  show(out);
}

namespace one {
struct Pair {
  int n;
};
}  // namespace one
namespace other {
struct Pair {
  int n;
  __device__ Pair(one::Pair&) : n(1) {}
  __device__ Pair(const one::Pair&) : n(2) {}
};
__device__ int of(Pair pair) { return pair.n; }
}  // namespace other
namespace one {
__global__ void by_name(Pair pair, int* out) { out[threadIdx.x] = other::of(pair); }
}  // namespace one

CASE(two_classes_of_one_name) {
  Device<int> out(33);
  one::by_name<<<1, 33>>>(one::Pair{1}, out.data);
  show(out);
}

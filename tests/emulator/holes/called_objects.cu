// An object that hides a function of its name.
#include "show.h"

struct Lane {
  __device__ int operator()(int& x) const { return ++x; }
  __device__ int operator()(const int& x) const { return -x; }
};
__device__ int twice(int x) { return 2 * x; }

__global__ void of_object(int n, int* out) {
  Lane twice;
  out[threadIdx.x] = twice(n);
}

CASE(object_that_hides_a_function) {
  Device<int> out(33);
  of_object<<<1, 33>>>(3, out.data);
  show(out);
}

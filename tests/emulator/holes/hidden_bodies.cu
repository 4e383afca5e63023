// A constructor whose body stands outside of its class, behind a list of initial values.
#include "show.h"

struct Made {
  int value, more;
  __device__ Made(int n);
};
__device__ int place() { return threadIdx.x; }
__device__ Made::Made(int n) : value{n + place()}, more(n) {}

__global__ void by_constructor(int* out) {
  Made made(100);
  out[threadIdx.x] = made.value + made.more;
}

CASE(constructor_outside_of_its_class) {
  Device<int> out(33);
  by_constructor<<<1, 33>>>(out.data);
  show(out);
}

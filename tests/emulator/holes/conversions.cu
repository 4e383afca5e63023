// A conversion that is called and not named.
#include "show.h"

__device__ int lane() { return threadIdx.x; }

struct Converted {
  int value;
  __device__ operator int() const { return value + lane(); }
};

__global__ void by_conversion(int* out) {
  Converted c = {100};
  int n = c;
  out[threadIdx.x] = n;
}

CASE(conversion_that_knows_its_thread) {
  Device<int> out(33);
  by_conversion<<<1, 33>>>(out.data);
  show(out);
}

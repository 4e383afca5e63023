// A kernel is used as a value where a local variable of its name is out of scope.
#include "show.h"

__global__ void fill(int* out) { out[threadIdx.x] = threadIdx.x; }

CASE(named_like_a_local) {
  Device<int> out(33);
  {
    int fill = 3;
    (void)fill;
  }
  auto kernel = fill;
  kernel<<<1, 33>>>(out.data);
  show(out);
}

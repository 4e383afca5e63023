// A member that changes though its object is constant.
#include "show.h"

struct Counter {
  int first;
  mutable int count;
};
struct Sum {
  int value;
};
__device__ Sum& operator>>(Sum& sum, int& count) {
  sum.value += ++count;
  return sum;
}

__global__ void by_parameter(Counter counter, int* out) {
  Sum sum = {0};
  sum >> counter.count;
  out[threadIdx.x] = 100 * sum.value + counter.count;
}

CASE(mutable_member_of_a_parameter) {
  Device<int> out(33);
  by_parameter<<<1, 33>>>(Counter{1, 2}, out.data);
  show(out);
}

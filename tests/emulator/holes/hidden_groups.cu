// Constructors and operators that ask a group which thread runs.
#include <cooperative_groups.h>

#include "show.h"

namespace cg = cooperative_groups;

struct Rank {
  int value = cg::this_thread_block().thread_rank();
};
struct Number {
  int value;
  __device__ Number operator+(int n) const {
    return {value + n + static_cast<int>(cg::this_thread_block().thread_rank())};
  }
};

__global__ void by_group(int* out) {
  Rank rank;
  Number number = {100};
  Number sum = number + 3;
  out[threadIdx.x] = 1000 * rank.value + sum.value;
}

CASE(classes_that_ask_a_group) {
  Device<int> out(33);
  by_group<<<1, 33>>>(out.data);
  show(out);
}

// A parameter that changes through a reference, before a barrier and after it.
#include "show.h"

__device__ int& first(int& a, int& b, bool is_first) { return is_first ? a : b; }

__global__ void of_two(int a, int b, int* out) {
  __shared__ int part[64];
  first(a, b, true) += threadIdx.x;
  part[threadIdx.x] = a;
  __syncthreads();
  out[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x] + a;
}

CASE(changed_before_a_barrier) {
  Device<int> out(std::vector<int>(33));
  of_two<<<1, 33>>>(5, 7, out.data);
  show(out);
}

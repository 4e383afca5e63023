// A function's argument that is called and not named.
#include "show.h"

__device__ int lane() { return threadIdx.x; }

__device__ int plus(int n, int more = lane()) { return n + more; }

__global__ void by_default(int* out) { out[threadIdx.x] = plus(100); }

CASE(default_argument_that_knows_its_thread) {
  Device<int> out(33);
  by_default<<<1, 33>>>(out.data);
  show(out);
}

__device__ int wait_here() {
  __syncthreads();
  return 0;
}
__device__ int nothing(int n = wait_here()) { return n; }

__global__ void by_waiting(int* out) {
  __shared__ int all[64];
  all[threadIdx.x] = threadIdx.x;
  int n = nothing();
  out[threadIdx.x] = all[(threadIdx.x + 1) % blockDim.x] + n;
}

CASE(default_argument_that_waits) {
  Device<int> out(33);
  by_waiting<<<1, 33>>>(out.data);
  show(out);
}

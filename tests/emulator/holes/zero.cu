// A division that no thread gets to.
#include "show.h"

__global__ void guarded(int n, int* out) {
  int i = threadIdx.x;
  if (n != 0 && i % n < 5) out[i] = 1;
}

CASE(not_reached_in_a_condition) {
  Device<int> out(std::vector<int>(33));
  guarded<<<1, 33>>>(0, out.data);
  show(out);
}

__global__ void all_gone(int n, int total, int* out) {
  __shared__ int part[64];
  if (n == 0 || threadIdx.x > 20) return;
  int each = total / n;
  part[threadIdx.x] = each;
  __syncthreads();
  out[threadIdx.x] = part[threadIdx.x] + each;
}

CASE(not_reached_since_all_are_gone) {
  Device<int> out(std::vector<int>(33));
  all_gone<<<1, 33>>>(0, 100, out.data);
  all_gone<<<1, 21>>>(7, 100, out.data);
  show(out);
}

__global__ void nested(int n, int* out) {
  int i = threadIdx.x;
  if (n != 0) {
    if (i % n < 5) out[i] = 1;
  }
  if (n > 0 && i / n < 5) out[i] += 1;
}

CASE(not_reached_inside) {
  Device<int> out(std::vector<int>(33));
  nested<<<1, 33>>>(0, out.data);
  show(out);
}

__global__ void turns(int n, int m, int* out) {
  int i = threadIdx.x, sum = 0;
  for (int k = 0; k < m; ++k) {
    int q = i / n;
    for (int j = 0; j < m / n; ++j) sum += q;
  }
  out[i] = sum;
}

CASE(not_reached_in_a_loop) {
  Device<int> out(std::vector<int>(33));
  turns<<<1, 33>>>(0, 0, out.data);
  turns<<<1, 33>>>(3, 7, out.data);
  show(out);
}

__global__ void chosen(int n, int* out) {
  int i = threadIdx.x;
  int q = n == 0 ? 0 : i % n;
  if (q < 5) out[i] = 1;
}

CASE(not_chosen) {
  Device<int> out(std::vector<int>(33));
  chosen<<<1, 33>>>(0, out.data);
  chosen<<<1, 33>>>(7, out.data);
  show(out);
}

// bug: a block reads what another block of the same launch writes
// finds: race global
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void square(int* x) { x[blockIdx.x] = blockIdx.x * blockIdx.x; }

__global__ void add_next(const int* x, int* out, int n) {
  out[blockIdx.x] = x[blockIdx.x] + x[(blockIdx.x + 1) % n];
}

__global__ void square_and_add_next(int* x, int* out, int n) {
  x[blockIdx.x] = blockIdx.x * blockIdx.x;                    // <- bug
  out[blockIdx.x] = x[blockIdx.x] + x[(blockIdx.x + 1) % n];  // <- bug
}

int main() {
  const int n = 40;
  int *x, *out;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemset(x, 0, n * sizeof(int)));
#ifdef FIXED
  square<<<n, 1>>>(x);
  check(cudaGetLastError());
  add_next<<<n, 1>>>(x, out, n);
#else
  square_and_add_next<<<n, 1>>>(x, out, n);
#endif
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 13) std::printf("%d\n", host[i]);
#endif
  check(cudaFree(x));
  check(cudaFree(out));
}

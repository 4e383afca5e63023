// bug: the last elements of an array are never written, and then read
// finds: uninitialised read global
// line: MARK
// sanitizer: initcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void square(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i * i;
}

__global__ void add(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + 1;  // <- bug
}

int main() {
  const int n = 300;
  int *x, *out;
  check(cudaMalloc(&x, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
#ifdef FIXED
  square<<<(n + 127) / 128, 128>>>(x, n);
#else
  square<<<n / 128, 128>>>(x, n);
#endif
  check(cudaGetLastError());
  add<<<(n + 127) / 128, 128>>>(x, out, n);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 256; i += 50) std::printf("%d\n", host[i]);
  check(cudaFree(x));
  check(cudaFree(out));
}

// bug: a copy is given the number of elements, so most of the input never arrives
// finds: uninitialised read global
// line: MARK
// sanitizer: initcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add_one(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + 1;  // <- bug
}

int main() {
  const int n = 400;
#ifdef FIXED
  const size_t size = n * sizeof(int);
#else
  const size_t size = n;
#endif
  std::vector<int> host(n, 5);
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), size, cudaMemcpyHostToDevice));
  add_one<<<4, 128>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[0]);
#ifdef FIXED
  std::printf("%d\n", host[n - 1]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

// bug: a stencil writes over values that its neighbours still need
// finds: race global
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void smooth(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) out[i] = in[i - 1] + 2 * in[i] + in[i + 1];  // <- bug
}

int main() {
  const int n = 500;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
#ifdef FIXED
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemset(out, 0, n * sizeof(int)));
#else
  out = in;
#endif
  smooth<<<4, 128>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 100) std::printf("%d\n", host[i]);
  check(cudaFree(out));
#endif
  check(cudaFree(in));
}

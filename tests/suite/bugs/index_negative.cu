// bug: the first thread looks at the element before the first
// finds: out-of-bounds read global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void differences(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
  if (i > 0 && i < n)
#else
  if (i < n)
#endif
    out[i] = in[i] - in[i - 1];  // <- bug
}

int main() {
  const int n = 200;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i;
  int *out, *in;  // in this order, so that something lies before `in`
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMemset(out, 0, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  differences<<<2, 128>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 1; i < n; i += 33) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

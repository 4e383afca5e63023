// bug: neighbouring threads read elements that are a row apart
// finds: advice: uncoalesced access
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add_one(const float* in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
#ifdef FIXED
  out[y * n + x] = in[y * n + x] + 1;
#else
  out[x * n + y] = in[x * n + y] + 1;  // <- bug
#endif
}

int main() {
  const int n = 256;
  std::vector<float> host(n * n);
  for (int i = 0; i < n * n; ++i) host[i] = i;
  float *in, *out;
  check(cudaMalloc(&in, n * n * sizeof(float)));
  check(cudaMalloc(&out, n * n * sizeof(float)));
  check(cudaMemcpy(in, host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  add_one<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n * n; i += 9999) std::printf("%.9g\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

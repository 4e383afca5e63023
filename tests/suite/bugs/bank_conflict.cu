// bug: the columns of a shared tile of 32 x 32 lie in one bank each
// finds: advice: bank conflict
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void transpose(const float* in, float* out, int n) {
#ifdef FIXED
  __shared__ float tile[32][33];
#else
  __shared__ float tile[32][32];
#endif
  int x = blockIdx.x * 32, y = blockIdx.y * 32, i = threadIdx.x, j = threadIdx.y;
  tile[j][i] = in[(y + j) * n + x + i];
  __syncthreads();
  out[(x + j) * n + y + i] = tile[i][j];  // <- bug
}

int main() {
  const int n = 128;
  std::vector<float> host(n * n);
  for (int i = 0; i < n * n; ++i) host[i] = i;
  float *in, *out;
  check(cudaMalloc(&in, n * n * sizeof(float)));
  check(cudaMalloc(&out, n * n * sizeof(float)));
  check(cudaMemcpy(in, host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(in, out, n);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n * n; i += 2999) std::printf("%.9g\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

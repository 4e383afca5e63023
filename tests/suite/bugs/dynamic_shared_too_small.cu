// bug: the launch gives the number of elements where bytes are asked for
// finds: out-of-bounds write shared, out-of-bounds read shared
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void reverse(const double* in, double* out) {
  extern __shared__ double tile[];
  int i = threadIdx.x;
  tile[i] = in[i];  // <- bug
  __syncthreads();
  out[i] = tile[blockDim.x - 1 - i];  // <- bug
}

int main() {
  const int n = 256;
#ifdef FIXED
  const size_t bytes = n * sizeof(double);
#else
  const size_t bytes = n;
#endif
  std::vector<double> host(n);
  for (int i = 0; i < n; ++i) host[i] = i + 0.25;
  double *in, *out;
  check(cudaMalloc(&in, n * sizeof(double)));
  check(cudaMalloc(&out, n * sizeof(double)));
  check(cudaMemset(out, 0, n * sizeof(double)));
  check(cudaMemcpy(in, host.data(), n * sizeof(double), cudaMemcpyHostToDevice));
  reverse<<<1, n, bytes>>>(in, out);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(double), cudaMemcpyDeviceToHost));
#ifdef FIXED
  for (int i = 0; i < n; i += 51) std::printf("%.9g\n", host[i]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

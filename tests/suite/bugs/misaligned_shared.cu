// bug: doubles are put behind an odd number of ints in dynamic shared memory
// finds: misaligned access shared
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void carve(double* out, int ints) {
  extern __shared__ __align__(16) char bytes[];
  double* values = reinterpret_cast<double*>(bytes + ints * sizeof(int));
  int i = threadIdx.x;
  values[i] = i + 0.5;  // <- bug
  __syncthreads();
  out[i] = values[31 - i];  // <- bug
}

int main() {
  const int n = 32;
#ifdef FIXED
  const int ints = 6;
#else
  const int ints = 5;
#endif
  double* out;
  check(cudaMalloc(&out, n * sizeof(double)));
  carve<<<1, n, 8 * sizeof(int) + n * sizeof(double)>>>(out, ints);
  check(cudaGetLastError());
  std::vector<double> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(double), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%.9g %.9g\n", host[0], host[n - 1]);
#endif
  check(cudaFree(out));
}

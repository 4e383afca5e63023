// feature: dynamic shared memory that is cut into arrays of several types
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void carve(double* out, int n) {
  extern __shared__ __align__(16) unsigned char memory[];
  double* wide = reinterpret_cast<double*>(memory);
  int* counts = reinterpret_cast<int*>(wide + n);
  char* flags = reinterpret_cast<char*>(counts + n);
  int i = threadIdx.x;
  wide[i] = 0.5 * i;
  counts[i] = i * i;
  flags[i] = static_cast<char>(i % 3);
  __syncthreads();
  int j = n - 1 - i;
  out[i] = wide[j] + counts[j] + 1000 * flags[j];
}

extern __shared__ int numbers[];

__global__ void whole(int* out) {
  numbers[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < blockDim.x; ++i) sum += numbers[i];
    *out = sum;
  }
}

int main() {
  const int n = 48;
  double* out;
  int *total, sum = 0;
  check(cudaMalloc(&out, n * sizeof(double)));
  check(cudaMalloc(&total, sizeof(int)));
  carve<<<1, n, n * (sizeof(double) + sizeof(int) + sizeof(char))>>>(out, n);
  check(cudaGetLastError());
  whole<<<1, 100, 100 * sizeof(int)>>>(total);
  check(cudaGetLastError());
  std::vector<double> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(double), cudaMemcpyDeviceToHost));
  check(cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 5) std::printf("%.9g\n", host[i]);
  std::printf("%d\n", sum);
  check(cudaFree(out));
  check(cudaFree(total));
}

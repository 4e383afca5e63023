// feature: atomics of every kind and type, in global and in shared memory
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void integers(int* x, unsigned* u, unsigned long long* l) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&x[0], i);
  atomicSub(&x[1], 2);
  atomicMin(&x[2], 50 - i);
  atomicMax(&x[3], i % 77);
  atomicAnd(&x[4], ~(1 << (i % 20)));
  atomicOr(&x[5], 1 << (i % 9));
  atomicXor(&x[6], i);
  atomicInc(&u[0], 9);
  atomicDec(&u[1], 6);
  atomicMax(&u[2], 4000000000u + i);
  atomicAdd(&l[0], 10000000000ull);
  atomicMax(&l[1], 1ull << (i % 50));
  if (i == 5) atomicExch(&u[3], 123u);
  if (atomicCAS(&x[7], 0, 1) == 0) atomicAdd(&x[8], 1);  // only one thread comes first
}

__global__ void floats(float* f, double* d) {
  __shared__ float sum;
  __shared__ int count;
  if (threadIdx.x == 0) {
    sum = 0;
    count = 0;
  }
  __syncthreads();
  atomicAdd(&sum, 0.25f);
  atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(f, sum);
    atomicAdd(d, 0.125 * count);
  }
}

int main() {
  int *x, host[9] = {0, 0, 100, 0, -1, 0, 0, 0, 0};
  unsigned *u, unsigned_host[4];
  unsigned long long *l, long_host[2];
  float *f, float_host;
  double *d, double_host;
  check(cudaMalloc(&x, sizeof host));
  check(cudaMalloc(&u, sizeof unsigned_host));
  check(cudaMalloc(&l, sizeof long_host));
  check(cudaMalloc(&f, sizeof float_host));
  check(cudaMalloc(&d, sizeof double_host));
  check(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
  check(cudaMemset(u, 0, sizeof unsigned_host));
  check(cudaMemset(l, 0, sizeof long_host));
  check(cudaMemset(f, 0, sizeof float_host));
  check(cudaMemset(d, 0, sizeof double_host));
  integers<<<7, 100>>>(x, u, l);
  check(cudaGetLastError());
  floats<<<5, 96>>>(f, d);
  check(cudaGetLastError());
  check(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(unsigned_host, u, sizeof unsigned_host, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(long_host, l, sizeof long_host, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(&float_host, f, sizeof float_host, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(&double_host, d, sizeof double_host, cudaMemcpyDeviceToHost));
  for (int value : host) std::printf("%d\n", value);
  for (unsigned value : unsigned_host) std::printf("%u\n", value);
  for (unsigned long long value : long_host) std::printf("%llu\n", value);
  std::printf("%.9g %.9g\n", float_host, double_host);
  check(cudaFree(x));
  check(cudaFree(u));
  check(cudaFree(l));
  check(cudaFree(f));
  check(cudaFree(d));
}

// Shows: a scan in one pass: blocks take numbers by an atomic and wait for their neighbour.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(x)                                                       \
  if (cudaError_t e = (x)) {                                        \
    printf("%s, line %d\n", cudaGetErrorString(e), __LINE__);       \
    exit(1);                                                        \
  }

constexpr int kBlock = 128;

__device__ unsigned int blockCounter = 0;

__global__ void scan(const int *in, int *out, volatile int *prefix, volatile int *flags, int n) {
  __shared__ int temp[kBlock];
  __shared__ unsigned int bid_s;
  __shared__ int previous;
  // Whoever starts first gets the lower number, so that nobody waits for one that has not begun.
  if (threadIdx.x == 0) bid_s = atomicAdd(&blockCounter, 1);
  __syncthreads();
  const unsigned int bid = bid_s;
  const int i = bid * kBlock + threadIdx.x;

  temp[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int stride = 1; stride < kBlock; stride <<= 1) {
    int add = threadIdx.x >= stride ? temp[threadIdx.x - stride] : 0;
    __syncthreads();
    temp[threadIdx.x] += add;
    __syncthreads();
  }

  if (threadIdx.x == kBlock - 1) {
    int before = 0;
    if (bid > 0) {
      while (flags[bid - 1] == 0) {
      }
      __threadfence();
      before = prefix[bid - 1];
    }
    prefix[bid] = before + temp[kBlock - 1];
    __threadfence();
    flags[bid] = 1;
    previous = before;
  }
  __syncthreads();
  if (i < n) out[i] = previous + temp[threadIdx.x];
}

int main() {
  const int n = 6000, blocks = (n + kBlock - 1) / kBlock;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = (i * 73) % 19 - 7;
  int *d_in, *d_out, *d_prefix, *d_flags;
  CK(cudaMalloc(&d_in, n * sizeof(int)));
  CK(cudaMalloc(&d_out, n * sizeof(int)));
  CK(cudaMalloc(&d_prefix, blocks * sizeof(int)));
  CK(cudaMalloc(&d_flags, blocks * sizeof(int)));
  CK(cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  for (int round = 0; round < 2; ++round) {
    const unsigned int zero = 0;
    CK(cudaMemset(d_flags, 0, blocks * sizeof(int)));
    CK(cudaMemcpyToSymbol(blockCounter, &zero, sizeof(zero)));
    scan<<<blocks, kBlock>>>(d_in, d_out, d_prefix, d_flags, n);
    CK(cudaGetLastError());
    CK(cudaMemcpy(out.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
    int sum = 0;
    for (int i = 0; i < n; ++i) {
      sum += in[i];
      if (out[i] != sum) {
        printf("round %d: element %d is %d, not %d\n", round, i, out[i], sum);
        return 1;
      }
    }
    printf("round %d: %d elements, sum %d\n", round, n, sum);
  }
  CK(cudaFree(d_in));
  CK(cudaFree(d_out));
  CK(cudaFree(d_prefix));
  CK(cudaFree(d_flags));
  return 0;
}

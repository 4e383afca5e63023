// A __shared__ variable at namespace scope, as isLastBlockDone in the CUDA programming guide's
// example of __threadfence: each block has its own.
#include <cstdio>
#include <cuda_runtime.h>
__shared__ int mine;
__shared__ float row[32];
__global__ void kernel(int* out) {
  if (threadIdx.x == 0) mine = blockIdx.x;
  __syncthreads();
  row[threadIdx.x] = threadIdx.x + mine;
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = (int)row[31 - threadIdx.x] + mine;
}
int main() {
  int* out;
  cudaMalloc(&out, 64 * 32 * sizeof(int));
  kernel<<<64, 32>>>(out);
  int host[64 * 32];
  if (cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
  int wrong = 0;
  for (int i = 0; i < 64 * 32; ++i) wrong += host[i] != 31 - i % 32 + 2 * (i / 32);
  std::printf("%d wrong\n", wrong);
  cudaFree(out);
  return wrong != 0;
}

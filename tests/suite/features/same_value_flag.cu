// feature: many threads write the same value to one flag, in global and in shared memory
// tolerates: racecheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void find(const int* in, int n, int wanted, int* found, int* blocks) {
  __shared__ int here;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) here = 0;
  __syncthreads();
  if (i < n && in[i] == wanted) {
    *found = 1;
    here = 1;
  }
  __syncthreads();
  if (threadIdx.x == 0) blocks[blockIdx.x] = here;
}

int main() {
  const int n = 500, blocks = 4;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i / 60 % 5;
  int *in, *found, *by_block;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&found, sizeof(int)));
  check(cudaMalloc(&by_block, blocks * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  for (int wanted = 3; wanted < 7; wanted += 1) {
    check(cudaMemset(found, 0, sizeof(int)));
    find<<<blocks, 128>>>(in, n, wanted, found, by_block);
    check(cudaGetLastError());
    check(cudaMemcpy(host.data(), found, sizeof(int), cudaMemcpyDeviceToHost));
    check(cudaMemcpy(host.data() + 1, by_block, blocks * sizeof(int), cudaMemcpyDeviceToHost));
    for (int k = 0; k < 5; ++k) std::printf("%d%c", host[k], k == 4 ? '\n' : ' ');
  }
  check(cudaFree(in));
  check(cudaFree(found));
  check(cudaFree(by_block));
}

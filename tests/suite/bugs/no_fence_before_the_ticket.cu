// bug: the last block adds up partial sums that nothing orders before the ticket
// finds: race global
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const int* in, int* parts, unsigned* ticket, int* total) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    int part = 0;
    for (unsigned i = 0; i < blockDim.x; ++i) part += in[blockIdx.x * blockDim.x + i];
    parts[blockIdx.x] = part;  // <- bug
#ifdef FIXED
    __threadfence();
#endif
    last = atomicAdd(ticket, 1) == gridDim.x - 1;
#ifdef FIXED
    __threadfence();
#endif
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  int all = 0;
  for (unsigned block = 0; block < gridDim.x; ++block) all += parts[block];  // <- bug
  *total = all;
}

int main() {
  const int blocks = 20, n = blocks * 32;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *parts, *total;
  unsigned* ticket;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&parts, blocks * sizeof(int)));
  check(cudaMalloc(&total, sizeof(int)));
  check(cudaMalloc(&ticket, sizeof(unsigned)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  check(cudaMemset(ticket, 0, sizeof(unsigned)));
  sum<<<blocks, 32>>>(in, parts, ticket, total);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), total, sizeof(int), cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d\n", host[0]);
#endif
  check(cudaFree(in));
  check(cudaFree(parts));
  check(cudaFree(total));
  check(cudaFree(ticket));
}

// bug: the host reads what a kernel writes to pinned memory, and does not wait for it
// finds: unsynchronised access
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum(const int* in, int n, int* result) {
  int total = 0;
  for (int i = 0; i < n; ++i) total += in[i];
  *result = total;
}

int main() {
  const int n = 1000;
  std::vector<int> host(n, 2);
  int *in, *result, *on_device;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaHostAlloc(&result, sizeof(int), cudaHostAllocMapped));
  check(cudaHostGetDevicePointer(&on_device, result, 0));
  *result = 0;
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  sum<<<1, 1>>>(in, n, on_device);
  check(cudaGetLastError());
#ifdef FIXED
  check(cudaDeviceSynchronize());
  std::printf("%d\n", *result);
#else
  int early = *result;  // <- bug
  std::printf("# %d\n", early);
  check(cudaDeviceSynchronize());
#endif
  check(cudaFreeHost(result));
  check(cudaFree(in));
}

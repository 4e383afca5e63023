// feature: structs with padding that nobody writes, copied whole by kernels and by the host
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

struct Entry {
  char tag;
  double value;
  short count;
};

__global__ void make(Entry* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[i].tag = static_cast<char>('a' + i % 26);
  out[i].value = 0.5 * i;
  out[i].count = static_cast<short>(-i);
}

__global__ void reverse(const Entry* in, Entry* out, int n) {
  __shared__ Entry tile[64];
  int i = threadIdx.x;
  if (i < n) tile[i] = in[i];
  __syncthreads();
  if (i < n) out[i] = tile[n - 1 - i];
}

int main() {
  const int n = 50;
  Entry *made, *out;
  check(cudaMalloc(&made, n * sizeof(Entry)));
  check(cudaMalloc(&out, n * sizeof(Entry)));
  make<<<1, 64>>>(made, n);
  check(cudaGetLastError());
  reverse<<<1, 64>>>(made, out, n);
  check(cudaGetLastError());
  std::vector<Entry> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(Entry), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 7)
    std::printf("%c %.9g %d\n", host[i].tag, host[i].value, host[i].count);
  check(cudaFree(made));
  check(cudaFree(out));
}

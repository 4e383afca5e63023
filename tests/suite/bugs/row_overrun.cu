// bug: the halo of a tile was forgotten, so that the next row's first element is read
// finds: row overrun
// line: MARK
// sanitizer: none
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void differences(const int* in, int* out, int height) {
  __shared__ int tile[9][8];
  int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * 8 + x];
  if (y == 0) tile[height][x] = 0;
  __syncthreads();
#ifdef FIXED
  out[y * 8 + x] = x < 7 ? tile[y][x + 1] - tile[y][x] : 0;
#else
  out[y * 8 + x] = tile[y][x + 1] - tile[y][x];  // <- bug
#endif
}

int main() {
  const int n = 64;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i * i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  differences<<<1, dim3(8, 8)>>>(in, out, 8);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 9) std::printf("%d\n", host[i]);
#ifdef FIXED
  std::printf("%d\n", host[7]);
#endif
  check(cudaFree(in));
  check(cudaFree(out));
}

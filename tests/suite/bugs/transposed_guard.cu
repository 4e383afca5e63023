// bug: width and height change places in the guard of an image that is no square
// finds: out-of-bounds read global, out-of-bounds write global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void invert(const int* in, int* out, int width, int height) {
  int x = threadIdx.x, y = threadIdx.y;
#ifdef FIXED
  if (x >= width || y >= height) return;
#else
  if (x >= height || y >= width) return;
#endif
  out[y * width + x] = 255 - in[y * width + x];  // <- bug
}

int main() {
  const int width = 12, height = 8, n = width * height;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i;
  int *in, *out;
  check(cudaMalloc(&in, n * sizeof(int)));
  check(cudaMalloc(&out, n * sizeof(int)));
  check(cudaMemset(out, 0, n * sizeof(int)));
  check(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  invert<<<1, dim3(16, 16)>>>(in, out, width, height);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 19) std::printf("%d\n", host[i]);
  check(cudaFree(in));
  check(cudaFree(out));
}

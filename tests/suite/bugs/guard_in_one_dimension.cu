// bug: a two-dimensional grid is guarded in x alone
// finds: out-of-bounds write global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void fill(int* image, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
#ifdef FIXED
  if (x < width && y < height)
#else
  if (x < width)
#endif
    image[y * width + x] = y * 100 + x;  // <- bug
}

int main() {
  const int width = 30, height = 20;
  int* image;
  check(cudaMalloc(&image, width * height * sizeof(int)));
  fill<<<dim3(2, 2), dim3(16, 16)>>>(image, width, height);
  check(cudaGetLastError());
  std::vector<int> host(width * height);
  check(cudaMemcpy(host.data(), image, host.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; y += 6) std::printf("%d\n", host[y * width + y]);
  check(cudaFree(image));
}

// feature: pitched memory, and copies of parts of matrices
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void add_row_number(int* x, size_t pitch, int width, int height) {
  int column = threadIdx.x, row = blockIdx.x;
  if (column >= width || row >= height) return;
  int* line = reinterpret_cast<int*>(reinterpret_cast<char*>(x) + row * pitch);
  line[column] += 100 * row;
}

int main() {
  const int width = 13, height = 6, row = width * sizeof(int);
  std::vector<int> host(width * height);
  for (int i = 0; i < width * height; ++i) host[i] = i;
  int *x, *packed;
  size_t pitch = 0;
  check(cudaMallocPitch(&x, &pitch, row, height));
  check(cudaMalloc(&packed, 4 * height * sizeof(int)));
  check(cudaMemcpy2D(x, pitch, host.data(), row, row, height, cudaMemcpyHostToDevice));
  add_row_number<<<height, 32>>>(x, pitch, width, height);
  check(cudaGetLastError());
  check(cudaMemcpy2D(host.data(), row, x, pitch, row, height, cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y) std::printf("%d %d\n", host[y * width], host[y * width + 12]);
  // Columns 3 to 6 of all rows.
  check(cudaMemcpy2D(packed, 4 * sizeof(int), x + 3, pitch, 4 * sizeof(int), height,
                     cudaMemcpyDeviceToDevice));
  check(cudaMemcpy(host.data(), packed, 4 * height * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4 * height; ++i) std::printf("%d\n", host[i]);
  check(cudaFree(x));
  check(cudaFree(packed));
}

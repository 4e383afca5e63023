// bug: a table of rows is copied to the device with the addresses of host rows in it
// finds: host pointer in kernel
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum_rows(int** rows, int columns, int* sums) {
  int total = 0;
  for (int i = 0; i < columns; ++i) total += rows[threadIdx.x][i];  // <- bug
  sums[threadIdx.x] = total;
}

int main() {
  const int height = 4, width = 16;
  std::vector<int> host(height * width, 3);
  int *matrix, **table, *sums, *rows[height];
  check(cudaMalloc(&matrix, host.size() * sizeof(int)));
  check(cudaMalloc(&table, sizeof rows));
  check(cudaMalloc(&sums, height * sizeof(int)));
  check(cudaMemcpy(matrix, host.data(), host.size() * sizeof(int), cudaMemcpyHostToDevice));
#ifdef FIXED
  for (int y = 0; y < height; ++y) rows[y] = matrix + y * width;
#else
  for (int y = 0; y < height; ++y) rows[y] = host.data() + y * width;
#endif
  check(cudaMemcpy(table, rows, sizeof rows, cudaMemcpyHostToDevice));
  sum_rows<<<1, height>>>(table, width, sums);
  check(cudaGetLastError());
  int result[height] = {};
  check(cudaMemcpy(result, sums, sizeof result, cudaMemcpyDeviceToHost));
#ifdef FIXED
  std::printf("%d %d\n", result[0], result[height - 1]);
#endif
  check(cudaFree(matrix));
  check(cudaFree(table));
  check(cudaFree(sums));
}

// bug: rows are taken to be as long as those of a wider matrix
// finds: out-of-bounds read global
// line: MARK
// sanitizer: memcheck
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void sum_rows(const int* in, int* sums, int rows, int columns, int stride) {
  int row = threadIdx.x;
  if (row >= rows) return;
  int sum = 0;
  for (int column = 0; column < columns; ++column) sum += in[row * stride + column];  // <- bug
  sums[row] = sum;
}

int main() {
  const int rows = 40, columns = 50;
#ifdef FIXED
  const int stride = columns;
#else
  const int stride = 64;
#endif
  std::vector<int> host(rows * columns);
  for (int i = 0; i < rows * columns; ++i) host[i] = i;
  int *in, *sums;
  check(cudaMalloc(&in, host.size() * sizeof(int)));
  check(cudaMalloc(&sums, rows * sizeof(int)));
  check(cudaMemcpy(in, host.data(), host.size() * sizeof(int), cudaMemcpyHostToDevice));
  sum_rows<<<1, 64>>>(in, sums, rows, columns, stride);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), sums, rows * sizeof(int), cudaMemcpyDeviceToHost));
  // The last rows would be whatever lies behind the matrix.
  for (int row = 0; row < 30; row += 5) std::printf("%d\n", host[row]);
  check(cudaFree(in));
  check(cudaFree(sums));
}

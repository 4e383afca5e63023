// An index past the end of a row, which leads to the next row: C++ leaves open what that means, so
// a compiler may count a loop's turns by it.
#include "show.h"

__global__ void of_a_tile(const int* a, int* out) {
  __shared__ int tile[8][8];
  const int t = threadIdx.x;
  tile[0][t] = a[t] * 2;
  __syncthreads();
  out[t] = tile[0][63 - t] + tile[t / 8][t % 8];
}

CASE(of_a_tile) {
  Device<int> a(counted<int>(64)), out(64);
  of_a_tile<<<1, 64>>>(a.data, out.data);
  show(out);
}

__global__ void of_a_tile_in_a_loop(float* out) {
  __shared__ float tile[4][16];
  const int t = threadIdx.x;
  for (int j = 0; j < 4; ++j) tile[0][t + 16 * j] = t * j;
  __syncthreads();
  float sum = 0;
  for (int j = 0; j < 64; ++j) sum += tile[0][j];
  out[t] = sum;
}

CASE(of_a_tile_in_a_loop) {
  Device<float> out(16);
  of_a_tile_in_a_loop<<<1, 16>>>(out.data);
  show(out);
  CHECK(out.get()[0] == 720);
}

struct Matrix {
  float at[3][3];
};

__global__ void of_a_parameter(Matrix matrix, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 9; ++j) sum += matrix.at[0][j] * j;
  if (i < n) out[i] = sum + i;
}

CASE(of_a_parameter) {
  Matrix matrix = {{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}};
  Device<float> out(64);
  of_a_parameter<<<1, 64>>>(matrix, out.data, 64);
  show(out);
  CHECK(out.get()[0] == 204);
}

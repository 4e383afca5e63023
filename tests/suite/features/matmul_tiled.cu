// feature: a product of matrices by tiles in shared memory, for any size
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

const int kTile = 16;

__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * kTile + y,
      column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int start = 0; start < k; start += kTile) {
    tile_a[y][x] = row < m && start + x < k ? a[row * k + start + x] : 0;
    tile_b[y][x] = column < n && start + y < k ? b[(start + y) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[y][i] * tile_b[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

int main() {
  const int m = 35, n = 50, k = 41;
  std::vector<float> a(m * k), b(k * n), c(m * n);
  for (int i = 0; i < m * k; ++i) a[i] = i % 9 - 4;
  for (int i = 0; i < k * n; ++i) b[i] = i % 5 - 2;
  float *da, *db, *dc;
  check(cudaMalloc(&da, a.size() * sizeof(float)));
  check(cudaMalloc(&db, b.size() * sizeof(float)));
  check(cudaMalloc(&dc, c.size() * sizeof(float)));
  check(cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  check(cudaMemcpy(db, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  matmul<<<dim3((n + kTile - 1) / kTile, (m + kTile - 1) / kTile), dim3(kTile, kTile)>>>(da, db, dc,
                                                                                         m, n, k);
  check(cudaGetLastError());
  check(cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < m * n; i += 101) std::printf("%.9g\n", c[i]);
  check(cudaFree(da));
  check(cudaFree(db));
  check(cudaFree(dc));
}

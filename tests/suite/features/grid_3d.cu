// feature: grids and blocks of three dimensions, larger than what there is to do
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static void check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("# %s\n", cudaGetErrorName(error));
}

__global__ void number(int* out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < nx && y < ny && z < nz) out[(z * ny + y) * nx + x] = x + 100 * y + 10000 * z;
}

int main() {
  const int nx = 11, ny = 7, nz = 5, n = nx * ny * nz;
  int* out;
  check(cudaMalloc(&out, n * sizeof(int)));
  number<<<dim3(3, 2, 3), dim3(4, 4, 2)>>>(out, nx, ny, nz);
  check(cudaGetLastError());
  std::vector<int> host(n);
  check(cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 24) std::printf("%d\n", host[i]);
  check(cudaFree(out));
}

#include <cuda_runtime.h>

#include "blur.cuh"
#include "../headers/error_check.h"

#define BLOCK 16
#define MAX_RADIUS 3

static __device__ int clampTo(int v, int low, int high) { return v < low ? low : v > high ? high : v; }

__global__ void blurKernel(const Pixel* in, Pixel* out, int w, int h, int radius) {
  __shared__ Pixel tile[BLOCK + 2 * MAX_RADIUS][BLOCK + 2 * MAX_RADIUS];
  const int side = BLOCK + 2 * radius;
  const int x0 = blockIdx.x * BLOCK - radius, y0 = blockIdx.y * BLOCK - radius;
  for (int v = threadIdx.y; v < side; v += BLOCK)
    for (int u = threadIdx.x; u < side; u += BLOCK)
      tile[v][u] = in[clampTo(y0 + v, 0, h - 1) * w + clampTo(x0 + u, 0, w - 1)];
  __syncthreads();

  const int col = blockIdx.x * BLOCK + threadIdx.x, row = blockIdx.y * BLOCK + threadIdx.y;
  if (col < w && row < h) {
    int r = 0, g = 0, b = 0, pixels = 0;
    for (int dy = -radius; dy <= radius; ++dy)
      for (int dx = -radius; dx <= radius; ++dx) {
        if (row + dy < 0 || row + dy >= h || col + dx < 0 || col + dx >= w) continue;
        Pixel p = tile[threadIdx.y + radius + dy][threadIdx.x + radius + dx];
        r += p.r;
        g += p.g;
        b += p.b;
        pixels++;
      }
    Pixel result;
    result.r = (unsigned char)(r / pixels);
    result.g = (unsigned char)(g / pixels);
    result.b = (unsigned char)(b / pixels);
    out[row * w + col] = result;
  }
}

Image blurOnDevice(const Image& image, int radius) {
  Image result = image;
  const size_t bytes = image.pixels.size() * sizeof(Pixel);
  Pixel *in, *out;
  checkCudaErrors(cudaMalloc(&in, bytes));
  checkCudaErrors(cudaMalloc(&out, bytes));
  checkCudaErrors(cudaMemcpy(in, image.pixels.data(), bytes, cudaMemcpyHostToDevice));
  const dim3 block(BLOCK, BLOCK);
  const dim3 grid((image.width + BLOCK - 1) / BLOCK, (image.height + BLOCK - 1) / BLOCK);
  blurKernel<<<grid, block>>>(in, out, image.width, image.height, radius);
  getLastCudaError("blurKernel");
  checkCudaErrors(cudaMemcpy(result.pixels.data(), out, bytes, cudaMemcpyDeviceToHost));
  checkCudaErrors(cudaFree(in));
  checkCudaErrors(cudaFree(out));
  return result;
}

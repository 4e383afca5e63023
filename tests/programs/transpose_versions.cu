// Shows: a transpose in five versions, from a copy to padded tiles on diagonals.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

const int TILE_DIM = 32;
const int BLOCK_ROWS = 8;

__global__ void copySimple(float *odata, const float *idata, int width, int height)
{
  int x = blockIdx.x * TILE_DIM + threadIdx.x;
  int y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    odata[(y + j) * width + x] = idata[(y + j) * width + x];
}

__global__ void transposeNaive(float *odata, const float *idata, int width, int height)
{
  int x = blockIdx.x * TILE_DIM + threadIdx.x;
  int y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    odata[x * height + (y + j)] = idata[(y + j) * width + x];
}

// With tiles in shared memory: both sides are read and written along rows.
__global__ void transposeCoalesced(float *odata, const float *idata, int width, int height)
{
  __shared__ float tile[TILE_DIM][TILE_DIM];
  int x = blockIdx.x * TILE_DIM + threadIdx.x;
  int y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];

  __syncthreads();

  x = blockIdx.y * TILE_DIM + threadIdx.x;
  y = blockIdx.x * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    odata[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

// One column more, so that the columns of a tile are in different banks.
__global__ void transposeNoBankConflicts(float *odata, const float *idata, int width, int height)
{
  __shared__ float tile[TILE_DIM][TILE_DIM + 1];
  int xIndex = blockIdx.x * TILE_DIM + threadIdx.x;
  int yIndex = blockIdx.y * TILE_DIM + threadIdx.y;
  int index_in = xIndex + yIndex * width;
  for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS)
    tile[threadIdx.y + i][threadIdx.x] = idata[index_in + i * width];
  __syncthreads();
  xIndex = blockIdx.y * TILE_DIM + threadIdx.x;
  yIndex = blockIdx.x * TILE_DIM + threadIdx.y;
  int index_out = xIndex + yIndex * height;
  for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS)
    odata[index_out + i * height] = tile[threadIdx.x][threadIdx.y + i];
}

// Blocks in the order of diagonals.
__global__ void transposeDiagonal(float *odata, const float *idata, int width, int height)
{
  __shared__ float block[TILE_DIM][TILE_DIM + 1];
  int blockIdx_x, blockIdx_y;
  if (width == height) {
    blockIdx_y = blockIdx.x;
    blockIdx_x = (blockIdx.x + blockIdx.y) % gridDim.x;
  } else {
    int bid = blockIdx.x + gridDim.x * blockIdx.y;
    blockIdx_y = bid % gridDim.y;
    blockIdx_x = ((bid / gridDim.y) + blockIdx_y) % gridDim.x;
  }
  int x = blockIdx_x * TILE_DIM + threadIdx.x, y = blockIdx_y * TILE_DIM + threadIdx.y;
  for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS)
    block[threadIdx.y + i][threadIdx.x] = idata[x + (y + i) * width];
  __syncthreads();
  x = blockIdx_y * TILE_DIM + threadIdx.x, y = blockIdx_x * TILE_DIM + threadIdx.y;
  for (int i = 0; i < TILE_DIM; i += BLOCK_ROWS)
    odata[x + (y + i) * height] = block[threadIdx.x][threadIdx.y + i];
}

int main(int argc, char **argv)
{
  const int width = 96, height = 64, count = width * height;
  const size_t mem_size = count * sizeof(float);
  float *h_idata = (float *)malloc(mem_size), *h_odata = (float *)malloc(mem_size);
  float *gold = (float *)malloc(mem_size);
  for (int i = 0; i < count; ++i) h_idata[i] = (float)i;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) gold[x * height + y] = h_idata[y * width + x];

  float *d_idata, *d_odata;
  checkCudaErrors(cudaMalloc((void **)&d_idata, mem_size));
  checkCudaErrors(cudaMalloc((void **)&d_odata, mem_size));
  checkCudaErrors(cudaMemcpy(d_idata, h_idata, mem_size, cudaMemcpyHostToDevice));

  dim3 dimGrid(width / TILE_DIM, height / TILE_DIM, 1);
  dim3 dimBlock(TILE_DIM, BLOCK_ROWS, 1);
  int failed = 0;
  for (int k = 0; k < 5; k++) {
    void (*kernel)(float *, const float *, int, int);
    const char *kernelName;
    switch (k) {
      case 0: kernel = &copySimple; kernelName = "simple copy"; break;
      case 1: kernel = &transposeNaive; kernelName = "naive"; break;
      case 2: kernel = &transposeCoalesced; kernelName = "coalesced"; break;
      case 3: kernel = &transposeNoBankConflicts; kernelName = "no bank conflicts"; break;
      default: kernel = &transposeDiagonal; kernelName = "diagonal"; break;
    }
    checkCudaErrors(cudaMemset(d_odata, 0, mem_size));
    kernel<<<dimGrid, dimBlock>>>(d_odata, d_idata, width, height);
    getLastCudaError(kernelName);
    checkCudaErrors(cudaMemcpy(h_odata, d_odata, mem_size, cudaMemcpyDeviceToHost));
    bool good = memcmp(h_odata, k == 0 ? h_idata : gold, mem_size) == 0;
    printf("transpose %s: %s\n", kernelName, good ? "passed" : "FAILED");
    failed += !good;
  }
  checkCudaErrors(cudaFree(d_idata));
  checkCudaErrors(cudaFree(d_odata));
  free(h_idata);
  free(h_odata);
  free(gold);
  return failed;
}

// Shows: cudaMallocPitch, 2-D copies and fills, rows that the hardware likes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

__global__ void addRows(float *devPtr, size_t pitch, int width, int height, float step)
{
    for (int r = blockIdx.y; r < height; r += gridDim.y) {
        float *row = (float *)((char *)devPtr + r * pitch);
        for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < width; c += gridDim.x * blockDim.x)
            row[c] += step * r;
    }
}

__global__ void sumOfRow(const float *devPtr, size_t pitch, int width, float *sums)
{
    __shared__ float total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const float *row = (const float *)((const char *)devPtr + blockIdx.x * pitch);
    for (int c = threadIdx.x; c < width; c += blockDim.x) atomicAdd(&total, row[c]);
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

int main()
{
    const int width = 37, height = 21;
    float host[height][width], back[height][width], part[height][5], sums[height];
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) host[y][x] = (float)(x + 100 * y);
    float *dev, *d_sums;
    size_t pitch;
    checkCudaErrors(cudaMallocPitch((void **)&dev, &pitch, width * sizeof(float), height));
    checkCudaErrors(cudaMalloc(&d_sums, height * sizeof(float)));
    printf("the pitch %s\n", pitch >= width * sizeof(float) && pitch % 32 == 0 ? "is wide enough" : "is too small");

    checkCudaErrors(cudaMemcpy2D(dev, pitch, host, width * sizeof(float), width * sizeof(float), height, cudaMemcpyHostToDevice));
    addRows<<<dim3(2, 8), 16>>>(dev, pitch, width, height, 1000.0f);
    sumOfRow<<<height, 32>>>(dev, pitch, width, d_sums);
    getLastCudaError("kernels");
    checkCudaErrors(cudaMemcpy2D(back, width * sizeof(float), dev, pitch, width * sizeof(float), height, cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(sums, d_sums, sizeof(sums), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int y = 0; y < height; y++) {
        float sum = 0;
        for (int x = 0; x < width; x++) {
            wrong += back[y][x] != host[y][x] + 1000.0f * y;
            sum += back[y][x];
        }
        wrong += sums[y] != sum;
    }
    printf("whole matrix: %d wrong\n", wrong);

    // Columns 10 to 14 alone; then zeros into columns 2 to 7 of the first 4 rows.
    checkCudaErrors(cudaMemcpy2DAsync(part, sizeof(part[0]), dev + 10, pitch, sizeof(part[0]), height, cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaDeviceSynchronize());
    for (int y = 0; y < height; y++) wrong += memcmp(part[y], &back[y][10], sizeof(part[0])) != 0;
    checkCudaErrors(cudaMemset2D(dev + 2, pitch, 0, 6 * sizeof(float), 4));
    checkCudaErrors(cudaMemcpy2D(back, width * sizeof(float), dev, pitch, width * sizeof(float), height, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            bool zero = y < 4 && x >= 2 && x < 8;
            wrong += back[y][x] != (zero ? 0.0f : host[y][x] + 1000.0f * y);
        }
    printf("parts: %d wrong\n", wrong);
    checkCudaErrors(cudaFree(dev));
    checkCudaErrors(cudaFree(d_sums));
    return wrong != 0;
}

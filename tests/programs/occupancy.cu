// Shows: the occupancy calculator picks a block; the launch uses it.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

__global__ void square(int *array, int arrayCount)
{
    extern __shared__ int dynamicSmem[];
    int idx = threadIdx.x + blockIdx.x * blockDim.x;
    dynamicSmem[threadIdx.x] = idx < arrayCount ? array[idx] : 0;
    if (idx < arrayCount) array[idx] = dynamicSmem[threadIdx.x] * dynamicSmem[threadIdx.x];
}

struct SharedBytes {
    __host__ __device__ size_t operator()(int threads) const { return threads * sizeof(int); }
};

static double reportPotentialOccupancy(void *kernel, int blockSize, size_t dynamicSMem)
{
    int device, numBlocks;
    cudaDeviceProp prop;
    checkCudaErrors(cudaGetDevice(&device));
    checkCudaErrors(cudaGetDeviceProperties(&prop, device));
    checkCudaErrors(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&numBlocks, kernel, blockSize, dynamicSMem));
    int activeWarps = numBlocks * blockSize / prop.warpSize;
    int maxWarps = prop.maxThreadsPerMultiProcessor / prop.warpSize;
    return (double)activeWarps / maxWarps;
}

static int launchConfig(int *array, int arrayCount, bool automatic)
{
    int blockSize = 32, minGridSize = 0;
    if (automatic) {
        checkCudaErrors(cudaOccupancyMaxPotentialBlockSizeVariableSMem(
            &minGridSize, &blockSize, square, SharedBytes(), arrayCount));
        if (blockSize < 64 || blockSize > 1024 || minGridSize < 1) return 1;
    }
    int gridSize = (arrayCount + blockSize - 1) / blockSize;
    square<<<gridSize, blockSize, blockSize * sizeof(int)>>>(array, arrayCount);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaDeviceSynchronize());
    double occupancy = reportPotentialOccupancy((void *)square, blockSize, blockSize * sizeof(int));
    printf("%s: occupancy is %s\n", automatic ? "automatic" : "32 threads", occupancy > 0.6 ? "good" : "low");
    return !(occupancy > 0 && occupancy <= 1 && (!automatic || occupancy > 0.6));
}

int main()
{
    const int count = 5000;
    int *array = (int *)malloc(count * sizeof(int)), *dArray, failed = 0;
    checkCudaErrors(cudaMalloc(&dArray, count * sizeof(int)));
    for (int automatic = 0; automatic < 2; automatic++) {
        for (int i = 0; i < count; i++) array[i] = i;
        checkCudaErrors(cudaMemcpy(dArray, array, count * sizeof(int), cudaMemcpyHostToDevice));
        failed += launchConfig(dArray, count, automatic);
        checkCudaErrors(cudaMemcpy(array, dArray, count * sizeof(int), cudaMemcpyDeviceToHost));
        for (int i = 0; i < count; i++) failed += array[i] != i * i;
    }
    int blocks = 0, block = 0;
    checkCudaErrors(cudaOccupancyMaxPotentialBlockSize(&blocks, &block, square, 0, 256));
    printf("with a limit: %s\n", block > 0 && block <= 256 ? "kept" : "BROKEN");
    failed += block > 256 || block <= 0 || blocks <= 0;
    checkCudaErrors(cudaFree(dArray));
    free(array);
    printf("Test %s\n", failed ? "FAILED" : "PASSED");
    return failed;
}

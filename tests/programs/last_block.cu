// Shows: a sum in one launch: the last block to finish adds what all blocks left in memory.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

#define BLOCK 128

__device__ unsigned int retirementCount = 0;

__device__ float blockSum(float value, float *shared)
{
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    float sum = shared[0];
    __syncthreads();
    return sum;
}

__global__ void sumSinglePass(const float *in, volatile float *partial, float *result, unsigned int n)
{
    __shared__ float shared[BLOCK];
    __shared__ bool isLastBlock;
    float mine = 0;
    for (unsigned int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) mine += in[i];
    float sum = blockSum(mine, shared);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence(); // the sum is seen before the ticket
        unsigned int ticket = atomicInc(&retirementCount, gridDim.x);
        isLastBlock = (ticket == gridDim.x - 1);
    }
    __syncthreads();
    if (isLastBlock) {
        mine = 0;
        for (int i = threadIdx.x; i < gridDim.x; i += BLOCK) mine += partial[i];
        sum = blockSum(mine, shared);
        if (threadIdx.x == 0) {
            *result = sum;
            retirementCount = 0; // for the next launch
        }
    }
}

int main()
{
    const int n = 9999, blocks = 20;
    float *h = (float *)malloc(n * sizeof(float)), *d_in, *d_partial, *d_result;
    double gold = 0;
    for (int i = 0; i < n; i++) gold += h[i] = (float)(i % 64);
    checkCudaErrors(cudaMalloc(&d_in, n * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_partial, blocks * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_result, sizeof(float)));
    checkCudaErrors(cudaMemcpy(d_in, h, n * sizeof(float), cudaMemcpyHostToDevice));
    int wrong = 0;
    for (int round = 0; round < 4; round++) {
        float result = 0;
        sumSinglePass<<<blocks - round, BLOCK>>>(d_in, d_partial, d_result, n);
        getLastCudaError("sumSinglePass");
        checkCudaErrors(cudaMemcpy(&result, d_result, sizeof(float), cudaMemcpyDeviceToHost));
        printf("%d blocks: %.0f\n", blocks - round, result);
        wrong += result != gold;
    }
    checkCudaErrors(cudaFree(d_in));
    checkCudaErrors(cudaFree(d_partial));
    checkCudaErrors(cudaFree(d_result));
    free(h);
    return wrong;
}

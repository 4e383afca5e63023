// Shows: what cudaFuncGetAttributes says of kernels, and cache and carve-out settings.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include "headers/error_check.h"

__constant__ float table[16];

__global__ void plain(float *x) { x[threadIdx.x] = threadIdx.x; }

__global__ void __launch_bounds__(128) bounded(float *x)
{
    __shared__ float s[128];
    s[threadIdx.x] = x[threadIdx.x] * table[threadIdx.x % 16];
    __syncthreads();
    x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

int main()
{
    int failed = 0;
    cudaFuncAttributes attr;
    checkCudaErrors(cudaFuncGetAttributes(&attr, plain));
    failed += attr.sharedSizeBytes != 0 || attr.maxThreadsPerBlock < 256;
    printf("plain: %zu bytes of shared memory\n", attr.sharedSizeBytes);

    checkCudaErrors(cudaFuncGetAttributes(&attr, bounded));
    bool version = attr.binaryVersion >= 30 && attr.ptxVersion >= 30;
    bool sizes = attr.numRegs > 0 && attr.numRegs < 256 && attr.localSizeBytes < 65536;
    printf("bounded: %zu bytes of shared memory, at most %d threads\n", attr.sharedSizeBytes, attr.maxThreadsPerBlock);
    failed += attr.sharedSizeBytes != 128 * sizeof(float) || attr.maxThreadsPerBlock != 128 || !version || !sizes;

    checkCudaErrors(cudaFuncSetCacheConfig(bounded, cudaFuncCachePreferShared));
    checkCudaErrors(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
    checkCudaErrors(cudaFuncSetAttribute(bounded, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    size_t limit = 0;
    checkCudaErrors(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
    failed += limit == 0;

    float h_table[16], x[128], *d_x;
    for (int i = 0; i < 16; i++) h_table[i] = (float)(i % 3);
    checkCudaErrors(cudaMemcpyToSymbol(table, h_table, sizeof(h_table)));
    checkCudaErrors(cudaMalloc(&d_x, sizeof(x)));
    plain<<<1, 128>>>(d_x);
    bounded<<<1, 128>>>(d_x);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaMemcpy(x, d_x, sizeof(x), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 128; i++) failed += x[i] != (127 - i) * h_table[(127 - i) % 16];

    // More threads than the bounds allow are refused.
    bounded<<<1, 256>>>(d_x);
    cudaError_t error = cudaGetLastError();
    printf("256 threads: %s\n", cudaGetErrorName(error));
    failed += error == cudaSuccess;
    checkCudaErrors(cudaFree(d_x));
    return failed;
}

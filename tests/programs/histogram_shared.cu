// Shows: a histogram with atomics in global memory, in shared memory, and with coarser threads.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

#define NUM_BINS 128
#define SECTION 4

__global__ void histoGlobal(const unsigned char *input, unsigned int *bins, long size)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int stride = blockDim.x * gridDim.x;
    while (i < size) {
        atomicAdd(&bins[input[i] % NUM_BINS], 1);
        i += stride;
    }
}

__global__ void histoPrivatized(const unsigned char *input, unsigned int *bins, long size)
{
    __shared__ unsigned int histo_s[NUM_BINS];
    for (unsigned int binIdx = threadIdx.x; binIdx < NUM_BINS; binIdx += blockDim.x)
        histo_s[binIdx] = 0u;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += blockDim.x * gridDim.x)
        atomicAdd(&(histo_s[input[i] % NUM_BINS]), 1);
    __syncthreads();
    for (unsigned int binIdx = threadIdx.x; binIdx < NUM_BINS; binIdx += blockDim.x)
        atomicAdd(&(bins[binIdx]), histo_s[binIdx]);
}

// Equal neighbours are counted in a register first.
__global__ void histoAggregated(const unsigned char *input, unsigned int *bins, long size)
{
    extern __shared__ unsigned int histo[];
    if (threadIdx.x < NUM_BINS) histo[threadIdx.x] = 0;
    __syncthreads();
    int prev = -1;
    unsigned int accumulator = 0;
    long start = (long)(blockIdx.x * blockDim.x + threadIdx.x) * SECTION;
    for (long i = start; i < start + SECTION && i < size; i++) {
        int curr = input[i] % NUM_BINS;
        if (curr != prev) {
            if (accumulator > 0) atomicAdd(&histo[prev], accumulator);
            accumulator = 1;
            prev = curr;
        } else {
            accumulator++;
        }
    }
    if (accumulator > 0) atomicAdd(&histo[prev], accumulator);
    __syncthreads();
    if (threadIdx.x < NUM_BINS) atomicAdd(&bins[threadIdx.x], histo[threadIdx.x]);
}

int main(void)
{
    const long size = 20011;
    unsigned char *buffer = (unsigned char *)malloc(size);
    unsigned int cpu[NUM_BINS] = {0}, gpu[NUM_BINS];
    for (long i = 0; i < size; i++) {
        buffer[i] = (unsigned char)((i / 3) * 2654435761u >> 24);
        cpu[buffer[i] % NUM_BINS]++;
    }
    unsigned char *d_buffer;
    unsigned int *d_bins;
    checkCudaErrors(cudaMalloc((void **)&d_buffer, size));
    checkCudaErrors(cudaMalloc((void **)&d_bins, NUM_BINS * sizeof(unsigned int)));
    checkCudaErrors(cudaMemcpy(d_buffer, buffer, size, cudaMemcpyHostToDevice));

    int wrong = 0;
    for (int version = 0; version < 3; version++) {
        checkCudaErrors(cudaMemset(d_bins, 0, NUM_BINS * sizeof(unsigned int)));
        if (version == 0) histoGlobal<<<8, 256>>>(d_buffer, d_bins, size);
        if (version == 1) histoPrivatized<<<8, 64>>>(d_buffer, d_bins, size);
        if (version == 2)
            histoAggregated<<<(size + 256 * SECTION - 1) / (256 * SECTION), 256, NUM_BINS * sizeof(unsigned int)>>>(
                d_buffer, d_bins, size);
        checkCudaErrors(cudaGetLastError());
        checkCudaErrors(cudaMemcpy(gpu, d_bins, sizeof(gpu), cudaMemcpyDeviceToHost));
        int same = memcmp(cpu, gpu, sizeof(cpu)) == 0;
        printf("version %d: %s, first bin %u\n", version, same ? "same" : "DIFFERENT", gpu[0]);
        wrong += !same;
    }
    checkCudaErrors(cudaFree(d_buffer));
    checkCudaErrors(cudaFree(d_bins));
    free(buffer);
    return wrong;
}

// Shows: assert in kernels, which all hold; checks of arguments and of invariants.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

__device__ int checkedDivide(int a, int b)
{
    assert(b != 0 && "division by zero");
    return a / b;
}

__global__ void meanOfNeighbours(const int *in, int *out, int n)
{
    assert(blockDim.y == 1 && blockDim.z == 1);
    assert(gridDim.x * blockDim.x >= n);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int count = 0, sum = 0;
    for (int k = i - 1; k <= i + 1; k++) {
        if (k < 0 || k >= n) continue;
        sum += in[k];
        count++;
    }
    assert(count == 2 || count == 3);
    out[i] = checkedDivide(sum, count);
    assert(out[i] >= 0);
}

// A partition of shared memory; the counts must come out right.
__global__ void partition(const int *in, int *out, int pivot)
{
    __shared__ int smaller, larger;
    if (threadIdx.x == 0) smaller = larger = 0;
    __syncthreads();
    int x = in[threadIdx.x];
    int place = x < pivot ? atomicAdd(&smaller, 1) : atomicAdd(&larger, 1);
    __syncthreads();
    assert(smaller + larger == blockDim.x);
    out[x < pivot ? place : smaller + place] = x;
}

int main()
{
    const int n = 128;
    int h[n], g[n], *d_in, *d_out, wrong = 0;
    for (int i = 0; i < n; i++) h[i] = (i * 71) % 97;
    checkCudaErrors(cudaMalloc(&d_in, sizeof(h)));
    checkCudaErrors(cudaMalloc(&d_out, sizeof(h)));
    checkCudaErrors(cudaMemcpy(d_in, h, sizeof(h), cudaMemcpyHostToDevice));
    meanOfNeighbours<<<2, 64>>>(d_in, d_out, n);
    checkCudaErrors(cudaDeviceSynchronize());
    checkCudaErrors(cudaMemcpy(g, d_out, sizeof(g), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        int sum = h[i], count = 1;
        if (i > 0) sum += h[i - 1], count++;
        if (i + 1 < n) sum += h[i + 1], count++;
        wrong += g[i] != sum / count;
    }
    partition<<<1, n>>>(d_in, d_out, 50);
    checkCudaErrors(cudaDeviceSynchronize());
    checkCudaErrors(cudaMemcpy(g, d_out, sizeof(g), cudaMemcpyDeviceToHost));
    int first = 0;
    while (first < n && g[first] < 50) first++;
    for (int i = first; i < n; i++) wrong += g[i] < 50;
    printf("all assertions held, %d smaller, %d wrong\n", first, wrong);
    checkCudaErrors(cudaFree(d_in));
    checkCudaErrors(cudaFree(d_out));
    return wrong != 0;
}

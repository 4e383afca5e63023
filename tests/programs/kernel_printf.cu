// Shows: printf in kernels, from one thread at a time, with many kinds of arguments.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

__device__ const char *nameOf(int digit)
{
    switch (digit % 3) {
        case 0: return "zero";
        case 1: return "one";
    }
    return "two";
}

__global__ void formats(int value, float f, double g, const int *pointer)
{
    if (threadIdx.x != 0) return;
    printf("int %d, padded [%5d], left [%-5d], hex %x %08X, unsigned %u\n", value, value, value, 255, 48879, 7u);
    printf("float %.3f, double %8.2f, exponent %e, general %g\n", f, g, g, 0.5);
    printf("char %c, string %s, percent %%, long %ld, long long %lld\n", 'x', nameOf(value), 1L << 33, -(1LL << 40));
    printf("null is %s, value behind the pointer %d\n", pointer == NULL ? "null" : "not null", *pointer);
}

__global__ void table(const int *x, int n)
{
    for (int i = 0; i < n; i++) {
        if (threadIdx.x == i) printf("x[%d] = %d (%s)\n", i, x[i], nameOf(x[i]));
        __syncthreads();
    }
}

__global__ void onlyBad(const int *x, int n, int *bad)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] < 0) {
        printf("x[%d] is negative: %d\n", i, x[i]);
        atomicAdd(bad, 1);
    }
}

int main()
{
    int h[5] = {4, -3, 9, 11, 5}, *d, *d_bad, bad = 0;
    checkCudaErrors(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 20));
    checkCudaErrors(cudaMalloc(&d, sizeof(h)));
    checkCudaErrors(cudaMalloc(&d_bad, sizeof(int)));
    checkCudaErrors(cudaMemset(d_bad, 0, sizeof(int)));
    checkCudaErrors(cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice));
    formats<<<1, 32>>>(42, 1.5f, -3.25, d);
    checkCudaErrors(cudaDeviceSynchronize());
    table<<<1, 8>>>(d, 5);
    getLastCudaError("table");
    onlyBad<<<2, 4>>>(d, 5, d_bad);
    checkCudaErrors(cudaMemcpy(&bad, d_bad, sizeof(int), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaDeviceSynchronize());
    printf("the host says: %d bad\n", bad);
    checkCudaErrors(cudaFree(d));
    checkCudaErrors(cudaFree(d_bad));
    return bad != 1;
}

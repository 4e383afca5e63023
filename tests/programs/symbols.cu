// Shows: __constant__ and __device__ variables: copies to and from, addresses, sizes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

typedef struct { float scale; int shift; int2 limits; } Settings;

__constant__ Settings settings;
__constant__ int coefficients[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ float devData = 1.5f;
__device__ int results[64];
__device__ unsigned int launches;

__global__ void checkGlobalVariable()
{
    devData += 2.0f;
    launches++;
}

__global__ void polynomial(const int *x, int n)
{
    int i = threadIdx.x;
    if (i >= n) return;
    int sum = 0;
    for (int k = 7; k >= 0; k--) sum = sum * x[i] + coefficients[k];
    sum = (int)(sum * settings.scale) + settings.shift;
    results[i] = sum < settings.limits.x ? settings.limits.x : sum > settings.limits.y ? settings.limits.y : sum;
}

static int onHost(int x, const int *c, Settings s)
{
    int sum = 0;
    for (int k = 7; k >= 0; k--) sum = sum * x + c[k];
    sum = (int)(sum * s.scale) + s.shift;
    return sum < s.limits.x ? s.limits.x : sum > s.limits.y ? s.limits.y : sum;
}

int main()
{
    float value = 3.14f;
    checkCudaErrors(cudaMemcpyToSymbol(devData, &value, sizeof(float)));
    checkGlobalVariable<<<1, 1>>>();
    checkGlobalVariable<<<1, 1>>>();
    getLastCudaError("checkGlobalVariable");
    checkCudaErrors(cudaMemcpyFromSymbol(&value, devData, sizeof(float)));
    unsigned int count = 0;
    checkCudaErrors(cudaMemcpyFromSymbol(&count, launches, sizeof(count)));
    printf("host: the value changed by the kernel is %.2f after %u launches\n", value, count);

    const int n = 50;
    int c[8] = {1, 2, 3, 4, 5, -1, 0, 1}, x[n], got[64], *d_x, wrong = 0;
    Settings s = {0.5f, 10, make_int2(-3000, 4000)};
    for (int i = 0; i < n; i++) x[i] = i % 7 - 3;
    // The last three only: the first five stand in the source.
    checkCudaErrors(cudaMemcpyToSymbol(coefficients, c + 5, 3 * sizeof(int), 5 * sizeof(int)));
    checkCudaErrors(cudaMemcpyToSymbol(settings, &s, sizeof(s), 0, cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMalloc(&d_x, sizeof(x)));
    checkCudaErrors(cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice));

    void *address;
    size_t size;
    checkCudaErrors(cudaGetSymbolAddress(&address, results));
    checkCudaErrors(cudaGetSymbolSize(&size, results));
    checkCudaErrors(cudaMemset(address, 0, size));
    polynomial<<<1, 64>>>(d_x, n);
    getLastCudaError("polynomial");
    checkCudaErrors(cudaMemcpyFromSymbol(got, results, sizeof(got)));
    for (int i = 0; i < 64; i++) wrong += got[i] != (i < n ? onHost(x[i], c, s) : 0);
    checkCudaErrors(cudaMemcpy(got, address, size, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) wrong += got[i] != (i < n ? onHost(x[i], c, s) : 0);
    printf("polynomial: %d wrong, %zu bytes\n", wrong, size);
    checkCudaErrors(cudaFree(d_x));
    return wrong != 0 || value != 3.14f + 2.0f + 2.0f || count != 2;
}

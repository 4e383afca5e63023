// Shows: atomics made of compare-and-swap loops: maximum of floats, sums and minima of doubles.
#include <cstdio>
#include <cstdlib>
#include <cfloat>
#include <cmath>
#include <cuda_runtime.h>
#include "headers/error_check.h"

__device__ static float atomicMaxFloat(float *address, float val)
{
    int *address_as_i = (int *)address;
    int old = *address_as_i, assumed;
    do {
        assumed = old;
        old = ::atomicCAS(address_as_i, assumed, __float_as_int(::fmaxf(val, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}

__device__ double myAtomicAdd(double *address, double val)
{
    unsigned long long int *address_as_ull = (unsigned long long int *)address;
    unsigned long long int old = *address_as_ull, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__device__ double atomicMinDouble(double *address, double val)
{
    unsigned long long int *p = reinterpret_cast<unsigned long long int *>(address);
    unsigned long long int old = __double_as_longlong(*address);
    while (val < __longlong_as_double(old)) {
        unsigned long long int assumed = old;
        old = atomicCAS(p, assumed, __double_as_longlong(val));
        if (old == assumed) break;
    }
    return __longlong_as_double(old);
}

// The bits of floats of one sign are ordered like integers.
__device__ void atomicMinByBits(float *address, float val)
{
    if (val >= 0)
        atomicMin((int *)address, __float_as_int(val));
    else
        atomicMax((unsigned int *)address, __float_as_uint(val));
}

__global__ void statistics(const float *x, int n, float *largest, float *smallest, double *sum, double *least)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        atomicMaxFloat(largest, x[i]);
        atomicMinByBits(smallest, x[i]);
        myAtomicAdd(sum, x[i]);
        atomicMinDouble(least, x[i] * 2.0);
    }
}

int main()
{
    const int n = 1500;
    float x[n], h_f[2] = {-FLT_MAX, FLT_MAX}, *d_x, *d_f, largest = -FLT_MAX, smallest = FLT_MAX;
    double h_d[2] = {0.0, DBL_MAX}, *d_d, sum = 0;
    for (int i = 0; i < n; i++) {
        x[i] = ((i * 7919) % 3001 - 1400) * 0.25f;
        largest = fmaxf(largest, x[i]);
        smallest = fminf(smallest, x[i]);
        sum += x[i];
    }
    checkCudaErrors(cudaMalloc(&d_x, sizeof(x)));
    checkCudaErrors(cudaMalloc(&d_f, sizeof(h_f)));
    checkCudaErrors(cudaMalloc(&d_d, sizeof(h_d)));
    checkCudaErrors(cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_f, h_f, sizeof(h_f), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_d, h_d, sizeof(h_d), cudaMemcpyHostToDevice));
    statistics<<<4, 128>>>(d_x, n, d_f, d_f + 1, d_d, d_d + 1);
    getLastCudaError("statistics");
    checkCudaErrors(cudaMemcpy(h_f, d_f, sizeof(h_f), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(h_d, d_d, sizeof(h_d), cudaMemcpyDeviceToHost));
    printf("largest %.2f, smallest %.2f, sum %.2f, least %.2f\n", h_f[0], h_f[1], h_d[0], h_d[1]);
    checkCudaErrors(cudaFree(d_x));
    checkCudaErrors(cudaFree(d_f));
    checkCudaErrors(cudaFree(d_d));
    return !(h_f[0] == largest && h_f[1] == smallest && h_d[0] == sum && h_d[1] == 2.0 * smallest);
}

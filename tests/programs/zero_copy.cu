// Shows: mapped host memory that kernels read and write without a copy; registered memory too.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include "headers/error_check.h"

__global__ void sumArraysZeroCopy(float *A, float *B, float *C, const int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) C[i] = A[i] + B[i];
}

static int compare(const float *a, const float *b, const float *c, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += c[i] != a[i] + b[i];
    return wrong;
}

int main(int argc, char **argv)
{
    int dev = 0;
    checkCudaErrors(cudaSetDeviceFlags(cudaDeviceMapHost));
    checkCudaErrors(cudaSetDevice(dev));
    cudaDeviceProp deviceProp;
    checkCudaErrors(cudaGetDeviceProperties(&deviceProp, dev));
    if (!deviceProp.canMapHostMemory) {
        printf("Device %d does not support mapping CPU host memory!\n", dev);
        return 1;
    }

    const int nElem = 1 << 12;
    size_t nBytes = nElem * sizeof(float);
    float *h_A, *h_B, *h_C, *d_A, *d_B, *d_C;
    checkCudaErrors(cudaHostAlloc((void **)&h_A, nBytes, cudaHostAllocMapped));
    checkCudaErrors(cudaHostAlloc((void **)&h_B, nBytes, cudaHostAllocMapped | cudaHostAllocWriteCombined));
    checkCudaErrors(cudaHostAlloc((void **)&h_C, nBytes, cudaHostAllocMapped | cudaHostAllocPortable));
    for (int i = 0; i < nElem; i++) {
        h_A[i] = (float)(i & 0xFF) / 8.0f;
        h_B[i] = (float)(i % 77) / 4.0f;
    }
    checkCudaErrors(cudaHostGetDevicePointer((void **)&d_A, (void *)h_A, 0));
    checkCudaErrors(cudaHostGetDevicePointer((void **)&d_B, (void *)h_B, 0));
    checkCudaErrors(cudaHostGetDevicePointer((void **)&d_C, (void *)h_C, 0));
    unsigned int flags = 0;
    checkCudaErrors(cudaHostGetFlags(&flags, h_A));
    sumArraysZeroCopy<<<(nElem + 511) / 512, 512>>>(d_A, d_B, d_C, nElem);
    getLastCudaError("sumArraysZeroCopy");
    checkCudaErrors(cudaDeviceSynchronize());
    int mapped = compare(h_A, h_B, h_C, nElem);
    printf("mapped: %d wrong, flag %s\n", mapped, flags & cudaHostAllocMapped ? "set" : "missing");

    // Memory of malloc becomes visible by registration.
    float *plain = (float *)malloc(nBytes), *d_plain;
    for (int i = 0; i < nElem; i++) plain[i] = -1.0f;
    checkCudaErrors(cudaHostRegister(plain, nBytes, cudaHostRegisterMapped));
    checkCudaErrors(cudaHostGetDevicePointer((void **)&d_plain, plain, 0));
    sumArraysZeroCopy<<<(nElem + 511) / 512, 512>>>(d_A, d_B, d_plain, nElem);
    getLastCudaError("sumArraysZeroCopy");
    checkCudaErrors(cudaDeviceSynchronize());
    int registered = compare(h_A, h_B, plain, nElem);
    printf("registered: %d wrong\n", registered);
    checkCudaErrors(cudaHostUnregister(plain));
    free(plain);
    checkCudaErrors(cudaFreeHost(h_A));
    checkCudaErrors(cudaFreeHost(h_B));
    checkCudaErrors(cudaFreeHost(h_C));
    return mapped + registered != 0 || !(flags & cudaHostAllocMapped);
}

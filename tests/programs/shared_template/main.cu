// Shows: dynamic shared memory in templates, four ways, also `extern T __shared__ s[]`.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>
#include "sharedmem.cuh"
#include "../headers/error_check.h"

template <class T>
__global__ void bySpecialisation(const T *g_idata, T *g_odata)
{
    SharedMemory<T> smem;
    T *sdata = smem.getPointer();
    const unsigned int tid = threadIdx.x;
    sdata[tid] = g_idata[tid];
    __syncthreads();
    g_odata[tid] = (T)blockDim.x * sdata[(tid + 1) % blockDim.x];
}

template <class T>
__global__ void byConversion(const T *g_idata, T *g_odata)
{
    T *sdata = SharedArray<T>();
    sdata[threadIdx.x] = g_idata[threadIdx.x];
    __syncthreads();
    g_odata[threadIdx.x] = (T)blockDim.x * sdata[(threadIdx.x + 1) % blockDim.x];
}

template <class T>
__global__ void byBytes(const T *g_idata, T *g_odata)
{
    extern __shared__ __align__(sizeof(double)) unsigned char my_smem[];
    T *sdata = reinterpret_cast<T *>(my_smem);
    sdata[threadIdx.x] = g_idata[threadIdx.x];
    __syncthreads();
    g_odata[threadIdx.x] = (T)blockDim.x * sdata[(threadIdx.x + 1) % blockDim.x];
}

// With one type only, the type may stand in the declaration.
template <class T>
__global__ void byDeclaration(const T *g_idata, T *g_odata)
{
    extern T __shared__ values[];
    values[threadIdx.x] = g_idata[threadIdx.x];
    __syncthreads();
    g_odata[threadIdx.x] = (T)blockDim.x * values[(threadIdx.x + 1) % blockDim.x];
}

typedef unsigned long long word;

template <class T>
static int runTest(const char *type, void (*kernel)(const T *, T *))
{
    const unsigned int num_threads = 96, mem_size = sizeof(T) * num_threads;
    T *h_idata = (T *)malloc(mem_size), *h_odata = (T *)malloc(mem_size), *d_idata, *d_odata;
    for (unsigned int i = 0; i < num_threads; ++i) h_idata[i] = (T)i;
    checkCudaErrors(cudaMalloc((void **)&d_idata, mem_size));
    checkCudaErrors(cudaMalloc((void **)&d_odata, mem_size));
    checkCudaErrors(cudaMemcpy(d_idata, h_idata, mem_size, cudaMemcpyHostToDevice));
    kernel<<<1, num_threads, mem_size>>>(d_idata, d_odata);
    getLastCudaError("Kernel execution failed");
    checkCudaErrors(cudaMemcpy(h_odata, d_odata, mem_size, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (unsigned int i = 0; i < num_threads; ++i) wrong += h_odata[i] != (T)(num_threads * ((i + 1) % num_threads));
    printf("%s: %s\n", type, wrong ? "FAILED" : "passed");
    checkCudaErrors(cudaFree(d_idata));
    checkCudaErrors(cudaFree(d_odata));
    free(h_idata);
    free(h_odata);
    return wrong;
}

int main()
{
    int failed = runTest<float>("float, specialised", bySpecialisation<float>);
    failed += runTest<int>("int, specialised", bySpecialisation<int>);
    failed += runTest<double>("double, specialised", bySpecialisation<double>);
    failed += runTest<float>("float, converted", byConversion<float>);
    failed += runTest<short>("short, converted", byConversion<short>);
    failed += runTest<double>("double, bytes", byBytes<double>);
    failed += runTest<char>("char, bytes", byBytes<char>);
    failed += runTest<word>("word, declared", byDeclaration<word>);
    return failed;
}

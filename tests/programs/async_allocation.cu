// Shows: memory that a stream allocates and frees in its order; attributes of pointers.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "headers/error_check.h"

__global__ void fill(float *x, int n, float value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value + i % 3;
}

__global__ void accumulate(const float *x, float *sum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] += x[i];
}

int main()
{
    const int n = 1500, rounds = 6;
    const dim3 block(256), grid((n + block.x - 1) / block.x);
    int supported = 0;
    checkCudaErrors(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
    if (!supported) return 1;
    cudaStream_t stream;
    checkCudaErrors(cudaStreamCreate(&stream));
    float *sum;
    checkCudaErrors(cudaMallocAsync((void **)&sum, n * sizeof(float), stream));
    checkCudaErrors(cudaMemsetAsync(sum, 0, n * sizeof(float), stream));
    for (int r = 0; r < rounds; r++) {
        float *scratch;
        checkCudaErrors(cudaMallocAsync(&scratch, n * sizeof(float), stream));
        fill<<<grid, block, 0, stream>>>(scratch, n, (float)r);
        accumulate<<<grid, block, 0, stream>>>(scratch, sum, n);
        getLastCudaError("accumulate");
        checkCudaErrors(cudaFreeAsync(scratch, stream));
    }
    std::vector<float> host(n);
    checkCudaErrors(cudaMemcpyAsync(host.data(), sum, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    cudaPointerAttributes attributes;
    checkCudaErrors(cudaPointerGetAttributes(&attributes, sum));
    bool device = attributes.type == cudaMemoryTypeDevice && attributes.device == 0;
    checkCudaErrors(cudaFreeAsync(sum, stream));
    checkCudaErrors(cudaStreamSynchronize(stream));
    checkCudaErrors(cudaPointerGetAttributes(&attributes, host.data()));
    bool plain = attributes.type == cudaMemoryTypeUnregistered;
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += host[i] != 15.0f + rounds * (i % 3);
    printf("%d wrong; pointers: %s, %s\n", wrong, device ? "device" : "?", plain ? "plain" : "?");
    checkCudaErrors(cudaStreamDestroy(stream));
    return wrong != 0 || !device || !plain;
}

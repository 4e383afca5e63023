// Shows: a diamond of streams: two wait for one by an event, the last one waits for both.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

__global__ void iota(int *x, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = i;
}

__global__ void multiply(const int *x, int *y, int n, int factor)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * factor;
}

__global__ void add(const int *a, const int *b, int *c, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) c[i] = a[i] + b[i];
}

int main()
{
    const int n = 3000;
    int *x, *left, *right, *sum, *host, low, high, wrong = 0;
    cudaStream_t streams[4];
    cudaEvent_t start, leftDone, rightDone;
    checkCudaErrors(cudaDeviceGetStreamPriorityRange(&low, &high));
    for (int i = 0; i < 3; i++) checkCudaErrors(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    checkCudaErrors(cudaStreamCreateWithPriority(&streams[3], cudaStreamNonBlocking, high));
    checkCudaErrors(cudaEventCreateWithFlags(&start, cudaEventDisableTiming));
    checkCudaErrors(cudaEventCreateWithFlags(&leftDone, cudaEventDisableTiming));
    checkCudaErrors(cudaEventCreateWithFlags(&rightDone, cudaEventDisableTiming));
    checkCudaErrors(cudaMalloc(&x, n * sizeof(int)));
    checkCudaErrors(cudaMalloc(&left, n * sizeof(int)));
    checkCudaErrors(cudaMalloc(&right, n * sizeof(int)));
    checkCudaErrors(cudaMalloc(&sum, n * sizeof(int)));
    checkCudaErrors(cudaMallocHost(&host, n * sizeof(int)));

    for (int round = 1; round <= 3; round++) {
        iota<<<1, 128, 0, streams[0]>>>(x, n);
        checkCudaErrors(cudaEventRecord(start, streams[0]));
        checkCudaErrors(cudaStreamWaitEvent(streams[1], start, 0));
        multiply<<<1, 128, 0, streams[1]>>>(x, left, n, round);
        checkCudaErrors(cudaEventRecord(leftDone, streams[1]));
        checkCudaErrors(cudaStreamWaitEvent(streams[2], start, 0));
        multiply<<<1, 128, 0, streams[2]>>>(x, right, n, 10 * round);
        checkCudaErrors(cudaEventRecord(rightDone, streams[2]));
        checkCudaErrors(cudaStreamWaitEvent(streams[3], leftDone, 0));
        checkCudaErrors(cudaStreamWaitEvent(streams[3], rightDone, 0));
        add<<<1, 128, 0, streams[3]>>>(left, right, sum, n);
        getLastCudaError("add");
        checkCudaErrors(cudaMemcpyAsync(host, sum, n * sizeof(int), cudaMemcpyDeviceToHost, streams[3]));
        checkCudaErrors(cudaStreamSynchronize(streams[3]));
        for (int i = 0; i < n; i++) wrong += host[i] != 11 * round * i;
        printf("round %d: last %d, %d wrong\n", round, host[n - 1], wrong);
    }
    for (int i = 0; i < 4; i++) checkCudaErrors(cudaStreamDestroy(streams[i]));
    checkCudaErrors(cudaEventDestroy(start));
    checkCudaErrors(cudaEventDestroy(leftDone));
    checkCudaErrors(cudaEventDestroy(rightDone));
    checkCudaErrors(cudaFree(x));
    checkCudaErrors(cudaFree(left));
    checkCudaErrors(cudaFree(right));
    checkCudaErrors(cudaFree(sum));
    checkCudaErrors(cudaFreeHost(host));
    return wrong != 0 || low < high;
}

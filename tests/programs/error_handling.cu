// Shows: errors on purpose, which are read, named and cleared.
// Provokes: shared memory over 48 KB, copy in the wrong direction, double free
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime.h>

static int unexpected = 0;

static void expect(cudaError_t got, cudaError_t wanted, const char *what)
{
    printf("%s: %s\n", what, cudaGetErrorName(got));
    if (got != wanted) {
        fprintf(stderr, "%s: wanted %s (%s)\n", what, cudaGetErrorName(wanted), cudaGetErrorString(got));
        unexpected++;
    }
}

// Drivers differ in the error that they give to a launch no GPU could run.
static void refused(cudaError_t got, const char *what)
{
    bool known = got == cudaErrorInvalidConfiguration || got == cudaErrorInvalidValue;
    printf("%s: %s\n", what, known ? "refused" : cudaGetErrorName(got));
    unexpected += !known;
}

__global__ void fill(int *x, int n, int value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}

int main()
{
    const int n = 100;
    int *d = NULL, h[n];
    expect(cudaMalloc(&d, n * sizeof(int)), cudaSuccess, "allocation");

    fill<<<1, 2048>>>(d, n, 1);
    refused(cudaPeekAtLastError(), "2048 threads, peeked");
    refused(cudaGetLastError(), "2048 threads");
    expect(cudaGetLastError(), cudaSuccess, "after it was read");

    fill<<<0, 32>>>(d, n, 1);
    refused(cudaGetLastError(), "no blocks");
    fill<<<1, dim3(1, 1, 128)>>>(d, n, 1);
    refused(cudaGetLastError(), "block too deep");
    fill<<<1, 32, 1 << 20>>>(d, n, 1);
    refused(cudaGetLastError(), "1 MB of shared memory");

    expect(cudaMemcpy(NULL, h, sizeof(h), cudaMemcpyHostToDevice), cudaErrorInvalidValue, "copy to NULL");
    expect(cudaSetDevice(1000), cudaErrorInvalidDevice, "device 1000");
    void *much = NULL;
    expect(cudaMalloc(&much, (size_t)1 << 50), cudaErrorMemoryAllocation, "a petabyte");
    expect(cudaMemcpy(h, d, sizeof(h), (cudaMemcpyKind)77), cudaErrorInvalidMemcpyDirection, "direction 77");
    expect(cudaFree(h), cudaErrorInvalidValue, "free of a host array");
    (void)cudaGetLastError();

    cudaStream_t stream;
    cudaEvent_t event;
    expect(cudaStreamCreate(&stream), cudaSuccess, "stream");
    expect(cudaEventCreate(&event), cudaSuccess, "event");
    fill<<<1, 128, 0, stream>>>(d, n, 42);
    expect(cudaGetLastError(), cudaSuccess, "launch");
    expect(cudaEventRecord(event, stream), cudaSuccess, "record");
    expect(cudaStreamSynchronize(stream), cudaSuccess, "synchronise");
    expect(cudaEventQuery(event), cudaSuccess, "query");
    expect(cudaStreamQuery(stream), cudaSuccess, "stream query");
    expect(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDefault), cudaSuccess, "copy");
    for (int i = 0; i < n; i++) unexpected += h[i] != 42;
    expect(cudaEventDestroy(event), cudaSuccess, "event destroyed");
    expect(cudaStreamDestroy(stream), cudaSuccess, "stream destroyed");
    expect(cudaFree(NULL), cudaSuccess, "free of NULL");
    expect(cudaFree(d), cudaSuccess, "free");
    unexpected += strcmp(cudaGetErrorName(cudaErrorNoDevice), "cudaErrorNoDevice") != 0;
    unexpected += strlen(cudaGetErrorString(cudaErrorLaunchFailure)) < 5;
    printf("%s\n", unexpected ? "FAILED" : "PASSED");
    return unexpected;
}

// Shows: copies and kernels in chunks, on several streams, with pinned memory.
#include <cstdio>
#include <cmath>
#include <cuda_runtime.h>

#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort = true)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        if (abort) exit(code);
    }
}

const int STREAMS = 4;

__global__ void scaleAndShift(float *a, int offset, int n)
{
    int i = offset + threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    float x = (float)i;
    a[i] = a[i] + x * 0.5f;
}

static float maxError(float *a, int n)
{
    float most = 0;
    for (int i = 0; i < n; i++) {
        float error = fabsf(a[i] - (1.0f + i * 0.5f));
        if (error > most) most = error;
    }
    return most;
}

int main()
{
    const int blockSize = 128, n = 4 * 1024 * blockSize / 16;
    const int streamSize = n / STREAMS, streamBytes = streamSize * sizeof(float);
    const int bytes = n * sizeof(float);
    float *a, *d_a;
    gpuErrchk(cudaMallocHost((void **)&a, bytes));
    gpuErrchk(cudaMalloc((void **)&d_a, bytes));

    cudaStream_t stream[STREAMS];
    for (int i = 0; i < STREAMS; ++i) gpuErrchk(cudaStreamCreate(&stream[i]));

    // Version 1: copy, kernel and copy of a chunk, chunk by chunk.
    for (int i = 0; i < n; i++) a[i] = 1.0f;
    for (int i = 0; i < STREAMS; ++i) {
        int offset = i * streamSize;
        gpuErrchk(cudaMemcpyAsync(&d_a[offset], &a[offset], streamBytes, cudaMemcpyHostToDevice, stream[i]));
        scaleAndShift<<<streamSize / blockSize, blockSize, 0, stream[i]>>>(d_a, offset, n);
        gpuErrchk(cudaMemcpyAsync(&a[offset], &d_a[offset], streamBytes, cudaMemcpyDeviceToHost, stream[i]));
    }
    gpuErrchk(cudaDeviceSynchronize());
    float first = maxError(a, n);
    printf("version 1: max error %d\n", (int)first);

    // Version 2: all copies, then all kernels, then all copies.
    for (int i = 0; i < n; i++) a[i] = 1.0f;
    for (int i = 0; i < STREAMS; ++i)
        gpuErrchk(cudaMemcpyAsync(&d_a[i * streamSize], &a[i * streamSize], streamBytes,
                                  cudaMemcpyHostToDevice, stream[i]));
    for (int i = 0; i < STREAMS; ++i)
        scaleAndShift<<<streamSize / blockSize, blockSize, 0, stream[i]>>>(d_a, i * streamSize, n);
    gpuErrchk(cudaPeekAtLastError());
    for (int i = 0; i < STREAMS; ++i)
        gpuErrchk(cudaMemcpyAsync(&a[i * streamSize], &d_a[i * streamSize], streamBytes,
                                  cudaMemcpyDeviceToHost, stream[i]));
    for (int i = 0; i < STREAMS; ++i) gpuErrchk(cudaStreamSynchronize(stream[i]));
    float second = maxError(a, n);
    printf("version 2: max error %d\n", (int)second);

    for (int i = 0; i < STREAMS; ++i) gpuErrchk(cudaStreamDestroy(stream[i]));
    gpuErrchk(cudaFree(d_a));
    gpuErrchk(cudaFreeHost(a));
    return first != 0 || second != 0;
}

// Shows: cuda_profiler_api.h: only the part between start and stop is profiled.
#include <cuda_runtime.h>
#include <cuda_profiler_api.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __CUDA_RUNTIME_H__
#define CUDA_CALL(x) do { cudaError_t result = (x); if (result != cudaSuccess) { \
    fprintf(stderr, "CUDA error: %s\n", cudaGetErrorString(result)); exit(-1); } } while (0)
#endif

__global__ void aos(float4 *points, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        points[i].x += 1.0f;
        points[i].w = points[i].x + points[i].y + points[i].z;
    }
}

__global__ void soa(float *x, const float *y, const float *z, float *w, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] += 1.0f;
        w[i] = x[i] + y[i] + z[i];
    }
}

int main()
{
    const int n = 2048;
    float *h = (float *)malloc(4 * n * sizeof(float)), *d_soa;
    float4 *d_aos, *h_aos = (float4 *)malloc(n * sizeof(float4));
    for (int i = 0; i < n; i++) {
        h_aos[i] = make_float4(i, i % 10, -i, 0);
        h[i] = i, h[n + i] = i % 10, h[2 * n + i] = -i, h[3 * n + i] = 0;
    }
    CUDA_CALL(cudaMalloc(&d_aos, n * sizeof(float4)));
    CUDA_CALL(cudaMalloc(&d_soa, 4 * n * sizeof(float)));
    CUDA_CALL(cudaMemcpy(d_aos, h_aos, n * sizeof(float4), cudaMemcpyHostToDevice));
    CUDA_CALL(cudaMemcpy(d_soa, h, 4 * n * sizeof(float), cudaMemcpyHostToDevice));

    CUDA_CALL(cudaProfilerStart());
    aos<<<n / 256, 256>>>(d_aos, n);
    soa<<<n / 256, 256>>>(d_soa, d_soa + n, d_soa + 2 * n, d_soa + 3 * n, n);
    CUDA_CALL(cudaGetLastError());
    CUDA_CALL(cudaDeviceSynchronize());
    CUDA_CALL(cudaProfilerStop());

    CUDA_CALL(cudaMemcpy(h_aos, d_aos, n * sizeof(float4), cudaMemcpyDeviceToHost));
    CUDA_CALL(cudaMemcpy(h, d_soa, 4 * n * sizeof(float), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += h_aos[i].w != 1.0f + i % 10 || h[3 * n + i] != 1.0f + i % 10;
    printf("structures of arrays and arrays of structures: %d wrong\n", wrong);
    CUDA_CALL(cudaFree(d_aos));
    CUDA_CALL(cudaFree(d_soa));
    free(h);
    free(h_aos);
    return wrong != 0;
}

// Shows: launch bounds, __restrict__, __ldg, forced and forbidden inlining, loops unrolled.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include "headers/error_check.h"

constexpr int THREADS = 128;
constexpr int MIN_BLOCKS = 2;

__device__ __forceinline__ float cube(float x) { return x * x * x; }
__device__ __noinline__ float notInlined(float x, float y) { return x * 0.5f + y; }

__global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
polynomial(const float *__restrict__ x, const float *__restrict__ c, float *__restrict__ y, int n)
{
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    const float v = __ldg(x + i);
    float sum = 0.f;
#pragma unroll
    for (int k = 3; k >= 0; --k) sum = sum * v + __ldg(&c[k]);
    y[i] = notInlined(sum, cube(v));
}

template <int UNROLL>
__launch_bounds__(THREADS) __global__ void strided(const int *__restrict__ in, int *__restrict__ out, int n)
{
    int values[UNROLL];
    const int base = blockIdx.x * THREADS * UNROLL + threadIdx.x;
#pragma unroll UNROLL
    for (int u = 0; u < UNROLL; u++) {
        const int i = base + u * THREADS;
        values[u] = i < n ? in[i] : 0;
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const int i = base + u * THREADS;
        if (i < n) out[i] = values[u] + values[UNROLL - 1 - u];
    }
}

int main()
{
    const int n = 2000;
    float x[n], y[n], c[4] = {1.f, -2.f, 3.f, 0.5f}, *d_x, *d_y, *d_c;
    int in[n], out[n], *d_in, *d_out, wrong = 0;
    for (int i = 0; i < n; i++) x[i] = (float)(i % 17 - 8), in[i] = i * 5;
    checkCudaErrors(cudaMalloc(&d_x, sizeof(x)));
    checkCudaErrors(cudaMalloc(&d_y, sizeof(y)));
    checkCudaErrors(cudaMalloc(&d_c, sizeof(c)));
    checkCudaErrors(cudaMalloc(&d_in, sizeof(in)));
    checkCudaErrors(cudaMalloc(&d_out, sizeof(out)));
    checkCudaErrors(cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_c, c, sizeof(c), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_in, in, sizeof(in), cudaMemcpyHostToDevice));
    polynomial<<<(n + THREADS - 1) / THREADS, THREADS>>>(d_x, d_c, d_y, n);
    getLastCudaError("polynomial");
    strided<4><<<(n + 4 * THREADS - 1) / (4 * THREADS), THREADS>>>(d_in, d_out, n);
    getLastCudaError("strided");
    checkCudaErrors(cudaMemcpy(y, d_y, sizeof(y), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float v = x[i], want = (((c[3] * v + c[2]) * v + c[1]) * v + c[0]) * 0.5f + v * v * v;
        int other = i / 512 * 512 + (3 - i % 512 / 128) * 128 + i % 128;
        wrong += y[i] != want;
        wrong += out[i] != in[i] + (other < n ? in[other] : 0);
    }
    printf("%d elements, %d wrong\n", n, wrong);
    checkCudaErrors(cudaFree(d_x));
    checkCudaErrors(cudaFree(d_y));
    checkCudaErrors(cudaFree(d_c));
    checkCudaErrors(cudaFree(d_in));
    checkCudaErrors(cudaFree(d_out));
    return wrong != 0;
}

// Shows: half precision: half2 arithmetic, conversions, a dot product, comparisons.
#include "cuda_fp16.h"
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "headers/error_check.h"

__global__ void hsaxpy(half a, const half *x, half *y, int n)
{
    int start = threadIdx.x + blockDim.x * blockIdx.x, stride = blockDim.x * gridDim.x;
#if __CUDA_ARCH__ >= 530
    int n2 = n / 2;
    const half2 *x2 = (const half2 *)x;
    half2 *y2 = (half2 *)y;
    for (int i = start; i < n2; i += stride)
        y2[i] = __hfma2(__halves2half2(a, a), x2[i], y2[i]);
    // first thread handles singleton for odd arrays
    if (start == 0 && (n % 2)) y[n - 1] = __hfma(a, x[n - 1], y[n - 1]);
#else
    for (int i = start; i < n; i += stride)
        y[i] = __float2half(__half2float(a) * __half2float(x[i]) + __half2float(y[i]));
#endif
}

__global__ void scalarProduct(const half2 *a, const half2 *b, float *result, int n2)
{
    __shared__ float part[4];
    half2 value = __float2half2_rn(0.f);
    for (int i = threadIdx.x; i < n2; i += blockDim.x) value = __hfma2(a[i], b[i], value);
    float sum = __low2float(value) + __high2float(value);
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) *result = part[0] + part[1] + part[2] + part[3];
}

__global__ void clampToRange(half *x, int n, float low, float high)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (__hlt(x[i], __float2half(low))) x[i] = __float2half(low);
    if (__hgt(x[i], __float2half(high))) x[i] = __float2half(high);
}

int main()
{
    const int n = 1001;
    std::vector<half> x(n), y(n), result(n);
    for (int i = 0; i < n; i++) {
        x[i] = __float2half(float(i % 16));
        y[i] = __float2half(0.5f * (i % 7));
    }
    half *d_x, *d_y;
    float *d_dot, dot = 0, gold = 0;
    checkCudaErrors(cudaMalloc(&d_x, n * sizeof(half)));
    checkCudaErrors(cudaMalloc(&d_y, n * sizeof(half)));
    checkCudaErrors(cudaMalloc(&d_dot, sizeof(float)));
    checkCudaErrors(cudaMemcpy(d_x, x.data(), n * sizeof(half), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_y, y.data(), n * sizeof(half), cudaMemcpyHostToDevice));

    scalarProduct<<<1, 128>>>((half2 *)d_x, (half2 *)d_y, d_dot, n / 2);
    hsaxpy<<<4, 96>>>(__float2half(2.0f), d_x, d_y, n);
    clampToRange<<<(n + 127) / 128, 128>>>(d_y, n, 3.0f, 20.0f);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaMemcpy(result.data(), d_y, n * sizeof(half), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(&dot, d_dot, sizeof(float), cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int i = 0; i < n; i++) {
        float want = 2.0f * (i % 16) + 0.5f * (i % 7);
        want = want < 3 ? 3 : want > 20 ? 20 : want;
        wrong += __half2float(result[i]) != want;
        if (i < n - 1) gold += (i % 16) * 0.5f * (i % 7);
    }
    printf("half: %d wrong, dot product %.1f\n", wrong, dot);
    checkCudaErrors(cudaFree(d_x));
    checkCudaErrors(cudaFree(d_y));
    checkCudaErrors(cudaFree(d_dot));
    return wrong != 0 || dot != gold;
}

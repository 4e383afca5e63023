// Shows: a separable convolution, rows then columns, with the filter in constant memory.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>
#include "headers/error_check.h"

#define KERNEL_RADIUS 4
#define KERNEL_LENGTH (2 * KERNEL_RADIUS + 1)
#define ROWS_BLOCKDIM_X 16
#define ROWS_BLOCKDIM_Y 4
#define ROWS_RESULT_STEPS 2
#define ROWS_HALO_STEPS 1

__constant__ float c_Kernel[KERNEL_LENGTH];

extern "C" void setConvolutionKernel(const float *h_Kernel)
{
    checkCudaErrors(cudaMemcpyToSymbol(c_Kernel, h_Kernel, KERNEL_LENGTH * sizeof(float)));
}

__global__ void convolutionRowsKernel(float *d_Dst, const float *d_Src, int imageW, int imageH, int pitch)
{
    __shared__ float s_Data[ROWS_BLOCKDIM_Y][(ROWS_RESULT_STEPS + 2 * ROWS_HALO_STEPS) * ROWS_BLOCKDIM_X];
    const int baseX = (blockIdx.x * ROWS_RESULT_STEPS - ROWS_HALO_STEPS) * ROWS_BLOCKDIM_X + threadIdx.x;
    const int baseY = blockIdx.y * ROWS_BLOCKDIM_Y + threadIdx.y;
    d_Src += baseY * pitch + baseX;
    d_Dst += baseY * pitch + baseX;

#pragma unroll
    for (int i = ROWS_HALO_STEPS; i < ROWS_HALO_STEPS + ROWS_RESULT_STEPS; i++)
        s_Data[threadIdx.y][threadIdx.x + i * ROWS_BLOCKDIM_X] = d_Src[i * ROWS_BLOCKDIM_X];
#pragma unroll
    for (int i = 0; i < ROWS_HALO_STEPS; i++)
        s_Data[threadIdx.y][threadIdx.x + i * ROWS_BLOCKDIM_X] =
            (baseX >= -i * ROWS_BLOCKDIM_X) ? d_Src[i * ROWS_BLOCKDIM_X] : 0;
#pragma unroll
    for (int i = ROWS_HALO_STEPS + ROWS_RESULT_STEPS; i < ROWS_HALO_STEPS + ROWS_RESULT_STEPS + ROWS_HALO_STEPS; i++)
        s_Data[threadIdx.y][threadIdx.x + i * ROWS_BLOCKDIM_X] =
            (imageW - baseX > i * ROWS_BLOCKDIM_X) ? d_Src[i * ROWS_BLOCKDIM_X] : 0;
    __syncthreads();

#pragma unroll
    for (int i = ROWS_HALO_STEPS; i < ROWS_HALO_STEPS + ROWS_RESULT_STEPS; i++) {
        float sum = 0;
        for (int j = -KERNEL_RADIUS; j <= KERNEL_RADIUS; j++)
            sum += c_Kernel[KERNEL_RADIUS - j] * s_Data[threadIdx.y][threadIdx.x + i * ROWS_BLOCKDIM_X + j];
        d_Dst[i * ROWS_BLOCKDIM_X] = sum;
    }
}

// Simpler: each thread reads what it needs.
__global__ void convolutionColumnsKernel(float *d_Dst, const float *d_Src, int imageW, int imageH, int pitch)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= imageW || y >= imageH) return;
    float sum = 0;
    for (int j = -KERNEL_RADIUS; j <= KERNEL_RADIUS; j++) {
        int row = y + j;
        if (row < 0 || row >= imageH) continue;
        sum += c_Kernel[KERNEL_RADIUS - j] * d_Src[row * pitch + x];
    }
    d_Dst[y * pitch + x] = sum;
}

static void convolveOnHost(float *dst, const float *src, const float *kernel, int w, int h, int dx, int dy)
{
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float sum = 0;
            for (int k = -KERNEL_RADIUS; k <= KERNEL_RADIUS; k++) {
                int u = x + k * dx, v = y + k * dy;
                if (u >= 0 && u < w && v >= 0 && v < h) sum += src[v * w + u] * kernel[KERNEL_RADIUS - k];
            }
            dst[y * w + x] = sum;
        }
}

int main(int argc, char **argv)
{
    const int imageW = 96, imageH = 40;
    assert(imageW % (ROWS_RESULT_STEPS * ROWS_BLOCKDIM_X) == 0 && imageH % ROWS_BLOCKDIM_Y == 0);
    const size_t bytes = imageW * imageH * sizeof(float);
    float h_Kernel[KERNEL_LENGTH];
    float *h_Input = (float *)malloc(bytes), *h_Buffer = (float *)malloc(bytes);
    float *h_Gold = (float *)malloc(bytes), *h_Output = (float *)malloc(bytes);
    for (int i = 0; i < KERNEL_LENGTH; i++) h_Kernel[i] = (float)(i % 4) + 1;
    for (int i = 0; i < imageW * imageH; i++) h_Input[i] = (float)(i * 13 % 16);

    float *d_Input, *d_Buffer, *d_Output;
    checkCudaErrors(cudaMalloc((void **)&d_Input, bytes));
    checkCudaErrors(cudaMalloc((void **)&d_Buffer, bytes));
    checkCudaErrors(cudaMalloc((void **)&d_Output, bytes));
    setConvolutionKernel(h_Kernel);
    checkCudaErrors(cudaMemcpy(d_Input, h_Input, bytes, cudaMemcpyHostToDevice));

    dim3 blocks(imageW / (ROWS_RESULT_STEPS * ROWS_BLOCKDIM_X), imageH / ROWS_BLOCKDIM_Y);
    convolutionRowsKernel<<<blocks, dim3(ROWS_BLOCKDIM_X, ROWS_BLOCKDIM_Y)>>>(d_Buffer, d_Input, imageW, imageH, imageW);
    getLastCudaError("convolutionRowsKernel() execution failed\n");
    convolutionColumnsKernel<<<dim3((imageW + 31) / 32, (imageH + 7) / 8), dim3(32, 8)>>>(d_Output, d_Buffer, imageW, imageH, imageW);
    getLastCudaError("convolutionColumnsKernel() execution failed\n");
    checkCudaErrors(cudaDeviceSynchronize());
    checkCudaErrors(cudaMemcpy(h_Output, d_Output, bytes, cudaMemcpyDeviceToHost));

    convolveOnHost(h_Buffer, h_Input, h_Kernel, imageW, imageH, 1, 0);
    convolveOnHost(h_Gold, h_Buffer, h_Kernel, imageW, imageH, 0, 1);
    double delta = 0, sum = 0;
    for (int i = 0; i < imageW * imageH; i++) {
        delta += (h_Output[i] - h_Gold[i]) * (h_Output[i] - h_Gold[i]);
        sum += h_Gold[i] * h_Gold[i];
    }
    double L2norm = sqrt(delta / sum);
    printf(L2norm < 1e-6 ? "Test passed\n" : "Test failed!\n");
    checkCudaErrors(cudaFree(d_Output));
    checkCudaErrors(cudaFree(d_Buffer));
    checkCudaErrors(cudaFree(d_Input));
    free(h_Output); free(h_Gold); free(h_Buffer); free(h_Input);
    return L2norm >= 1e-6;
}

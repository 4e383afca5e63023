// Shows: Blelloch's exclusive scan, up and down a tree, with offsets against bank conflicts.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "headers/error_check.h"

#define NUM_BANKS 32
#define LOG_NUM_BANKS 5
#define CONFLICT_FREE_OFFSET(n) ((n) >> LOG_NUM_BANKS)

__global__ void prescan(const float *g_idata, float *g_odata, float *block_sums, int n)
{
    extern __shared__ float temp[];
    int thid = threadIdx.x;
    int base = blockIdx.x * n;
    int offset = 1;

    int ai = thid;
    int bi = thid + (n / 2);
    int bankOffsetA = CONFLICT_FREE_OFFSET(ai);
    int bankOffsetB = CONFLICT_FREE_OFFSET(bi);
    temp[ai + bankOffsetA] = g_idata[base + ai];
    temp[bi + bankOffsetB] = g_idata[base + bi];

    for (int d = n >> 1; d > 0; d >>= 1) {  // up
        __syncthreads();
        if (thid < d) {
            int ai = offset * (2 * thid + 1) - 1;
            int bi = offset * (2 * thid + 2) - 1;
            ai += CONFLICT_FREE_OFFSET(ai);
            bi += CONFLICT_FREE_OFFSET(bi);
            temp[bi] += temp[ai];
        }
        offset *= 2;
    }
    if (thid == 0) {
        int last = n - 1 + CONFLICT_FREE_OFFSET(n - 1);
        if (block_sums) block_sums[blockIdx.x] = temp[last];
        temp[last] = 0;
    }
    for (int d = 1; d < n; d *= 2) {  // down
        offset >>= 1;
        __syncthreads();
        if (thid < d) {
            int ai = offset * (2 * thid + 1) - 1;
            int bi = offset * (2 * thid + 2) - 1;
            ai += CONFLICT_FREE_OFFSET(ai);
            bi += CONFLICT_FREE_OFFSET(bi);
            float t = temp[ai];
            temp[ai] = temp[bi];
            temp[bi] += t;
        }
    }
    __syncthreads();
    g_odata[base + ai] = temp[ai + bankOffsetA];
    g_odata[base + bi] = temp[bi + bankOffsetB];
}

__global__ void uniformAdd(float *data, const float *increments, int n)
{
    __shared__ float uni;
    if (threadIdx.x == 0) uni = increments[blockIdx.x];
    __syncthreads();
    data[blockIdx.x * n + threadIdx.x] += uni;
    data[blockIdx.x * n + threadIdx.x + blockDim.x] += uni;
}

int main()
{
    const int n = 256, blocks = 16, total = n * blocks;
    std::vector<float> in(total), out(total);
    for (int i = 0; i < total; ++i) in[i] = float(i % 5);
    float *d_in, *d_out, *d_sums;
    checkCudaErrors(cudaMalloc(&d_in, total * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_out, total * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_sums, blocks * sizeof(float)));
    checkCudaErrors(cudaMemcpy(d_in, in.data(), total * sizeof(float), cudaMemcpyHostToDevice));

    size_t shared = (n + CONFLICT_FREE_OFFSET(n - 1) + 1) * sizeof(float);
    prescan<<<blocks, n / 2, shared>>>(d_in, d_out, d_sums, n);
    prescan<<<1, blocks / 2, shared>>>(d_sums, d_sums, nullptr, blocks);
    uniformAdd<<<blocks, n / 2>>>(d_out, d_sums, n);
    getLastCudaError("scan");
    checkCudaErrors(cudaMemcpy(out.data(), d_out, total * sizeof(float), cudaMemcpyDeviceToHost));

    float sum = 0;
    int wrong = 0;
    for (int i = 0; i < total; ++i) {
        wrong += out[i] != sum;
        sum += in[i];
    }
    printf("%d elements, last %.0f, %d differences\n", total, out[total - 1], wrong);
    checkCudaErrors(cudaFree(d_in));
    checkCudaErrors(cudaFree(d_out));
    checkCudaErrors(cudaFree(d_sums));
    return wrong > 0;
}

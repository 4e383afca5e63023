// Shows: an inclusive scan after Hillis and Steele with two buffers, and over several blocks.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define BLOCK 256
#define wbCheck(stmt) do { cudaError_t err = stmt; if (err != cudaSuccess) { \
    printf("Failed to run stmt %s: %s\n", #stmt, cudaGetErrorString(err)); return -1; } } while (0)

__global__ void scanBlocks(const int *in, int *out, int *sums, int n)
{
    __shared__ int temp[2 * BLOCK];
    int thid = threadIdx.x, i = blockIdx.x * BLOCK + thid;
    int pout = 0, pin = 1;
    temp[pout * BLOCK + thid] = i < n ? in[i] : 0;
    __syncthreads();
    for (int offset = 1; offset < BLOCK; offset *= 2) {
        pout = 1 - pout; // swap the halves
        pin = 1 - pout;
        if (thid >= offset)
            temp[pout * BLOCK + thid] = temp[pin * BLOCK + thid] + temp[pin * BLOCK + thid - offset];
        else
            temp[pout * BLOCK + thid] = temp[pin * BLOCK + thid];
        __syncthreads();
    }
    if (i < n) out[i] = temp[pout * BLOCK + thid];
    if (thid == BLOCK - 1 && sums != NULL) sums[blockIdx.x] = temp[pout * BLOCK + thid];
}

// The same in place: a thread reads, all wait, it writes.
__global__ void scanInPlace(int *x, int n)
{
    __shared__ int XY[BLOCK];
    XY[threadIdx.x] = threadIdx.x < n ? x[threadIdx.x] : 0;
    for (unsigned int stride = 1; stride < blockDim.x; stride *= 2) {
        __syncthreads();
        int in1 = 0;
        if (threadIdx.x >= stride) in1 = XY[threadIdx.x - stride];
        __syncthreads();
        XY[threadIdx.x] += in1;
    }
    if (threadIdx.x < n) x[threadIdx.x] = XY[threadIdx.x];
}

__global__ void addSums(int *out, const int *sums, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (blockIdx.x > 0 && i < n) out[i] += sums[blockIdx.x - 1];
}

int main(int argc, char **argv)
{
    const int n = 5000, blocks = (n + BLOCK - 1) / BLOCK;
    int *h_in = (int *)malloc(n * sizeof(int)), *h_out = (int *)malloc(n * sizeof(int));
    for (int i = 0; i < n; i++) h_in[i] = i % 7 - 2;
    int *d_in, *d_out, *d_sums;
    wbCheck(cudaMalloc((void **)&d_in, n * sizeof(int)));
    wbCheck(cudaMalloc((void **)&d_out, n * sizeof(int)));
    wbCheck(cudaMalloc((void **)&d_sums, blocks * sizeof(int)));
    wbCheck(cudaMemcpy(d_in, h_in, n * sizeof(int), cudaMemcpyHostToDevice));

    scanBlocks<<<blocks, BLOCK>>>(d_in, d_out, d_sums, n);
    scanInPlace<<<1, BLOCK>>>(d_sums, blocks);
    addSums<<<blocks, BLOCK>>>(d_out, d_sums, n);
    wbCheck(cudaGetLastError());
    wbCheck(cudaDeviceSynchronize());
    wbCheck(cudaMemcpy(h_out, d_out, n * sizeof(int), cudaMemcpyDeviceToHost));

    int sum = 0, wrong = 0;
    for (int i = 0; i < n; i++) {
        sum += h_in[i];
        if (h_out[i] != sum) wrong++;
    }
    printf("scan of %d numbers: last is %d, %d wrong\n", n, h_out[n - 1], wrong);
    wbCheck(cudaFree(d_in));
    wbCheck(cudaFree(d_out));
    wbCheck(cudaFree(d_sums));
    free(h_in);
    free(h_out);
    return wrong ? 1 : 0;
}

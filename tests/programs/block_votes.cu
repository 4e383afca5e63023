// Shows: __syncthreads_count, _and and _or: barriers that count.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

#define THREADS 96

__global__ void votes(const int *x, int *count, int *all, int *any, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? x[i] : 0;
    int c = __syncthreads_count(value > 50);
    int a = __syncthreads_and(value >= 0);
    int o = __syncthreads_or(value == 99);
    if (threadIdx.x == 0) {
        count[blockIdx.x] = c;
        all[blockIdx.x] = a != 0;
        any[blockIdx.x] = o != 0;
    }
}

// Odd-even sort of a block, until no thread had anything to do.
__global__ void sortUntilQuiet(int *x, int n, int *rounds)
{
    __shared__ int s[2 * THREADS];
    s[threadIdx.x] = threadIdx.x < n ? x[threadIdx.x] : 1 << 30;
    s[threadIdx.x + THREADS] = 1 << 30;
    __syncthreads();
    int round = 0, busy;
    do {
        busy = 0;
        for (int odd = 0; odd < 2; odd++) {
            int left = 2 * threadIdx.x + odd;
            int swapped = 0;
            if (left + 1 < THREADS && s[left] > s[left + 1]) {
                int t = s[left];
                s[left] = s[left + 1];
                s[left + 1] = t;
                swapped = 1;
            }
            busy |= __syncthreads_or(swapped);
        }
        round++;
    } while (busy);
    if (threadIdx.x < n) x[threadIdx.x] = s[threadIdx.x];
    if (threadIdx.x == 0) *rounds = round;
}

int main()
{
    const int blocks = 5, n = blocks * THREADS - 7;
    int x[n], count[blocks], all[blocks], any[blocks], *d_x, *d_c, *d_a, *d_o, wrong = 0;
    for (int i = 0; i < n; i++) x[i] = (i * 37) % (i < 2 * THREADS ? 99 : 103) - (i / THREADS == 3);
    checkCudaErrors(cudaMalloc(&d_x, sizeof(x)));
    checkCudaErrors(cudaMalloc(&d_c, sizeof(count)));
    checkCudaErrors(cudaMalloc(&d_a, sizeof(all)));
    checkCudaErrors(cudaMalloc(&d_o, sizeof(any)));
    checkCudaErrors(cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice));
    votes<<<blocks, THREADS>>>(d_x, d_c, d_a, d_o, n);
    getLastCudaError("votes");
    checkCudaErrors(cudaMemcpy(count, d_c, sizeof(count), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(all, d_a, sizeof(all), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(any, d_o, sizeof(any), cudaMemcpyDeviceToHost));
    for (int b = 0; b < blocks; b++) {
        int c = 0, a = 1, o = 0;
        for (int i = b * THREADS; i < (b + 1) * THREADS && i < n; i++) {
            c += x[i] > 50;
            a &= x[i] >= 0;
            o |= x[i] == 99;
        }
        printf("block %d: %d above 50, all %d, any %d\n", b, count[b], all[b], any[b]);
        wrong += c != count[b] || a != all[b] || o != any[b];
    }
    const int few = 80;
    int rounds = 0;
    sortUntilQuiet<<<1, THREADS>>>(d_x, few, d_c);
    getLastCudaError("sortUntilQuiet");
    checkCudaErrors(cudaMemcpy(x, d_x, few * sizeof(int), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(&rounds, d_c, sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 1; i < few; i++) wrong += x[i - 1] > x[i];
    printf("sorted in %s rounds, %d wrong\n", rounds > 1 && rounds <= few ? "some" : "too many", wrong);
    checkCudaErrors(cudaFree(d_x));
    checkCudaErrors(cudaFree(d_c));
    checkCudaErrors(cudaFree(d_a));
    checkCudaErrors(cudaFree(d_o));
    return wrong != 0;
}

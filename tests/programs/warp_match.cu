// Shows: __match_any_sync and __match_all_sync: lanes of one key add once; warp-wide reductions.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include "headers/error_check.h"

const int KEYS = 10;

// One atomic for all lanes of a warp that have the same key.
__global__ void countByKey(const int *keys, int *counts, int *leaders, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned active = __ballot_sync(0xffffffff, i < n);
    if (i >= n) return;
    int key = keys[i];
    unsigned peers = __match_any_sync(active, key);
    int lane = threadIdx.x % warpSize, first = __ffs(peers) - 1;
    if (lane == first) {
        atomicAdd(&counts[key], __popc(peers));
        atomicAdd(leaders, 1);
    }
}

__global__ void uniformWarps(const int *keys, int *uniform, int *sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, same = 0;
    int key = keys[i];
    __match_all_sync(0xffffffff, key, &same);
    int total = __reduce_add_sync(0xffffffff, key);
    int largest = __reduce_max_sync(0xffffffff, key);
    if (threadIdx.x % 32 == 0) {
        uniform[i / 32] = same != 0;
        sums[i / 32] = total * 100 + largest;
    }
}

int main()
{
    const int n = 500, whole = 480;
    int keys[n], counts[KEYS], gold[KEYS] = {0}, leaders = 0, goldLeaders = 0, wrong = 0;
    int uniform[whole / 32], sums[whole / 32], *d_keys, *d_counts, *d_uniform, *d_sums;
    for (int i = 0; i < n; i++) {
        keys[i] = i / 32 % 4 == 2 ? 7 : (i * i + i / 5) % KEYS;
        gold[keys[i]]++;
    }
    for (int w = 0; w < n; w += 32) {
        int seen[KEYS] = {0};
        for (int i = w; i < w + 32 && i < n; i++) goldLeaders += seen[keys[i]]++ == 0;
    }
    checkCudaErrors(cudaMalloc(&d_keys, sizeof(keys)));
    checkCudaErrors(cudaMalloc(&d_counts, (KEYS + 1) * sizeof(int)));
    checkCudaErrors(cudaMalloc(&d_uniform, sizeof(uniform)));
    checkCudaErrors(cudaMalloc(&d_sums, sizeof(sums)));
    checkCudaErrors(cudaMemset(d_counts, 0, (KEYS + 1) * sizeof(int)));
    checkCudaErrors(cudaMemcpy(d_keys, keys, sizeof(keys), cudaMemcpyHostToDevice));
    countByKey<<<(n + 63) / 64, 64>>>(d_keys, d_counts, d_counts + KEYS, n);
    getLastCudaError("countByKey");
    uniformWarps<<<whole / 96, 96>>>(d_keys, d_uniform, d_sums, n);
    getLastCudaError("uniformWarps");
    checkCudaErrors(cudaMemcpy(counts, d_counts, sizeof(counts), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(&leaders, d_counts + KEYS, sizeof(int), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(uniform, d_uniform, sizeof(uniform), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(sums, d_sums, sizeof(sums), cudaMemcpyDeviceToHost));
    for (int k = 0; k < KEYS; k++) wrong += counts[k] != gold[k];
    for (int w = 0; w < whole / 32; w++) {
        int same = 1, total = 0, largest = 0;
        for (int i = 32 * w; i < 32 * w + 32; i++) {
            same &= keys[i] == keys[32 * w];
            total += keys[i];
            if (keys[i] > largest) largest = keys[i];
        }
        wrong += uniform[w] != same || sums[w] != total * 100 + largest;
    }
    printf("%d atomics for %d keys, %d wrong\n", leaders, n, wrong);
    checkCudaErrors(cudaFree(d_keys));
    checkCudaErrors(cudaFree(d_counts));
    checkCudaErrors(cudaFree(d_uniform));
    checkCudaErrors(cudaFree(d_sums));
    return wrong != 0 || leaders != goldLeaders;
}

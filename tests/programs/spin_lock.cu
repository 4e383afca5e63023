// Shows: a lock done right: one thread of a block takes it, fences stand inside.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

struct Lock {
    int *mutex;
    Lock(void) {
        checkCudaErrors(cudaMalloc((void **)&mutex, sizeof(int)));
        checkCudaErrors(cudaMemset(mutex, 0, sizeof(int)));
    }
    void release() { checkCudaErrors(cudaFree(mutex)); }
    __device__ void lock(void) {
        while (atomicCAS(mutex, 0, 1) != 0)
            ;
        __threadfence();
    }
    __device__ void unlock(void) {
        __threadfence();
        atomicExch(mutex, 0);
    }
};

// All of a block's results go into the list under one lock.
__global__ void countBlocks(Lock lock, volatile int *numBlocks, volatile int *order)
{
    if (threadIdx.x == 0) {
        lock.lock();
        order[*numBlocks] = blockIdx.x;
        *numBlocks = *numBlocks + 1;
        lock.unlock();
    }
}

// A lock for each account; threads of one warp may want the same one.
__global__ void deposit(int *locks, volatile long long *balance, const int *account, const int *amount, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool done = false;
    while (!done) {
        if (atomicCAS(&locks[account[i]], 0, 1) == 0) {
            __threadfence();
            balance[account[i]] = balance[account[i]] + amount[i];
            __threadfence();
            atomicExch(&locks[account[i]], 0);
            done = true;
        }
    }
}

int main()
{
    const int blocks = 64;
    Lock lock;
    int *d_count, *d_order, count = 0, order[blocks], seen[blocks] = {0}, wrong = 0;
    checkCudaErrors(cudaMalloc(&d_count, sizeof(int)));
    checkCudaErrors(cudaMalloc(&d_order, sizeof(order)));
    checkCudaErrors(cudaMemset(d_count, 0, sizeof(int)));
    countBlocks<<<blocks, 64>>>(lock, d_count, d_order);
    getLastCudaError("countBlocks");
    checkCudaErrors(cudaMemcpy(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost));
    checkCudaErrors(cudaMemcpy(order, d_order, sizeof(order), cudaMemcpyDeviceToHost));
    for (int b : order) wrong += seen[b]++ != 0;
    printf("counted %d blocks, %d twice\n", count, wrong);

    const int n = 400, accounts = 7;
    int account[n], amount[n], *d_account, *d_amount, *d_locks;
    long long balance[accounts], gold[accounts] = {0}, *d_balance;
    for (int i = 0; i < n; i++) {
        account[i] = (i * i) % accounts;
        amount[i] = i % 100 - 30;
        gold[account[i]] += amount[i];
    }
    checkCudaErrors(cudaMalloc(&d_account, sizeof(account)));
    checkCudaErrors(cudaMalloc(&d_amount, sizeof(amount)));
    checkCudaErrors(cudaMalloc(&d_locks, accounts * sizeof(int)));
    checkCudaErrors(cudaMalloc(&d_balance, sizeof(balance)));
    checkCudaErrors(cudaMemcpy(d_account, account, sizeof(account), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_amount, amount, sizeof(amount), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemset(d_locks, 0, accounts * sizeof(int)));
    checkCudaErrors(cudaMemset(d_balance, 0, sizeof(balance)));
    deposit<<<(n + 63) / 64, 64>>>(d_locks, d_balance, d_account, d_amount, n);
    getLastCudaError("deposit");
    checkCudaErrors(cudaMemcpy(balance, d_balance, sizeof(balance), cudaMemcpyDeviceToHost));
    for (int a = 0; a < accounts; a++) {
        printf("account %d: %lld\n", a, balance[a]);
        wrong += balance[a] != gold[a];
    }
    lock.release();
    for (void *p : {(void *)d_count, (void *)d_order, (void *)d_account, (void *)d_amount, (void *)d_locks, (void *)d_balance})
        checkCudaErrors(cudaFree(p));
    return wrong != 0 || count != blocks;
}

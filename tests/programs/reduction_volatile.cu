// Shows: a reduction whose last warp is unrolled over volatile memory, with __syncwarp between.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define CHECK(call) if ((call) != cudaSuccess) { fprintf(stderr, "line %d\n", __LINE__); exit(1); }

template <class T>
struct Plus { __device__ static T apply(T a, T b) { return a + b; } static T zero() { return T(0); } };
template <class T>
struct Largest { __device__ static T apply(T a, T b) { return a > b ? a : b; } static T zero() { return T(-1000000); } };

template <class Op, class T>
__device__ void warpReduce(volatile T *sdata, int tid)
{
    T v = Op::apply(sdata[tid], sdata[tid + 32]); __syncwarp();
    sdata[tid] = v; __syncwarp();
    v = Op::apply(v, sdata[tid + 16]); __syncwarp();
    sdata[tid] = v; __syncwarp();
    v = Op::apply(v, sdata[tid + 8]); __syncwarp();
    sdata[tid] = v; __syncwarp();
    v = Op::apply(v, sdata[tid + 4]); __syncwarp();
    sdata[tid] = v; __syncwarp();
    v = Op::apply(v, sdata[tid + 2]); __syncwarp();
    sdata[tid] = v; __syncwarp();
    v = Op::apply(v, sdata[tid + 1]); __syncwarp();
    sdata[tid] = v;
}

template <class Op, class T, int SIZE>
__global__ void reduce(const T *in, T *out, int n, T zero)
{
    __shared__ T sdata[SIZE + 32];
    int tid = threadIdx.x, i = blockIdx.x * SIZE + tid;
    T mine = zero;
    for (; i < n; i += gridDim.x * SIZE) mine = Op::apply(mine, in[i]);
    sdata[tid] = mine;
    if (tid < 32) sdata[SIZE + tid] = zero;
    __syncthreads();
    for (int s = SIZE / 2; s > 32; s >>= 1) {
        if (tid < s) sdata[tid] = Op::apply(sdata[tid], sdata[tid + s]);
        __syncthreads();
    }
    if (tid < 32) warpReduce<Op, T>(sdata, tid);
    if (tid == 0) out[blockIdx.x] = sdata[0];
}

template <class Op, class T>
T reduceOnDevice(const T *d_in, int n)
{
    const int blocks = 6, size = 128;
    T *d_part, part;
    CHECK(cudaMalloc(&d_part, blocks * sizeof(T)));
    reduce<Op, T, size><<<blocks, size>>>(d_in, d_part, n, Op::zero());
    reduce<Op, T, 64><<<1, 64>>>(d_part, d_part, blocks, Op::zero());
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&part, d_part, sizeof(T), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d_part));
    return part;
}

int main()
{
    const int n = 5000;
    double sum = 0, largest = -1e6, *h = (double *)malloc(n * sizeof(double)), *d;
    int isum = 0, *hi = (int *)malloc(n * sizeof(int)), *di;
    for (int i = 0; i < n; i++) {
        h[i] = (i * 31 % 1009) * 0.25;
        hi[i] = i * 17 % 103 - 50;
        sum += h[i];
        isum += hi[i];
        if (h[i] > largest) largest = h[i];
    }
    CHECK(cudaMalloc(&d, n * sizeof(double)));
    CHECK(cudaMalloc(&di, n * sizeof(int)));
    CHECK(cudaMemcpy(d, h, n * sizeof(double), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(di, hi, n * sizeof(int), cudaMemcpyHostToDevice));
    double gpuSum = reduceOnDevice<Plus<double> >(d, n);
    double gpuLargest = reduceOnDevice<Largest<double> >(d, n);
    int gpuISum = reduceOnDevice<Plus<int> >(di, n);
    printf("sum %.2f, largest %.2f, sum of ints %d\n", gpuSum, gpuLargest, gpuISum);
    CHECK(cudaFree(d));
    CHECK(cudaFree(di));
    free(h);
    free(hi);
    return !(gpuSum == sum && gpuLargest == largest && gpuISum == isum);
}

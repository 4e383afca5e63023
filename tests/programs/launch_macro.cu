// Shows: launches through macros and function pointers, and spelt with spaces.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define KERNEL_ARGS2(grid, block) <<< grid, block >>>
#define KERNEL_ARGS3(grid, block, sh_mem) <<< grid, block, sh_mem >>>
#define KERNEL_LAUNCH(kernel, grid, block, ...)                                     \
    do {                                                                            \
        kernel<<<(grid), (block)>>>(__VA_ARGS__);                                   \
        cudaError_t launch_error = cudaGetLastError();                              \
        if (launch_error != cudaSuccess) {                                          \
            fprintf(stderr, #kernel ": %s\n", cudaGetErrorString(launch_error));    \
            exit(1);                                                                \
        }                                                                           \
    } while (0)
#define DIV_UP(a, b) (((a) + (b) - 1) / (b))
#define TID (blockIdx.x * blockDim.x + threadIdx.x)
#define FOR_EACH(i, n) for (int i = TID; i < (n); i += gridDim.x * blockDim.x)
#define CHECK(x) if ((x) != cudaSuccess) { fprintf(stderr, "%s\n", #x); exit(1); }

#define DEFINE_KERNEL(name, expression)              \
    __global__ void name(int *x, int n)              \
    {                                                \
        FOR_EACH(i, n) { int v = x[i]; x[i] = (expression); } \
    }

DEFINE_KERNEL(increment, v + 1)
DEFINE_KERNEL(timesThree, v * 3)
DEFINE_KERNEL(square, v * v)

__global__ void rotate(int *x, int n)
{
    extern __shared__ int s[];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    x[t] = s[(t + 1) % n];
}

template <typename T, int N>
__global__ void addConstant(T *x, T c)
{
    if (TID < N) x[TID] += c;
}

int main()
{
    const int n = 200, threads = 64;
    int h[n], *d, wrong = 0;
    for (int i = 0; i < n; i++) h[i] = i;
    CHECK(cudaMalloc(&d, n * sizeof(int)));
    CHECK(cudaMemcpy(d, h, n * sizeof(int), cudaMemcpyHostToDevice));

    KERNEL_LAUNCH(increment, DIV_UP(n, threads), threads, d, n); // i + 1
    timesThree << <DIV_UP(n, threads), threads >> > (d, n);      // 3i + 3
    square KERNEL_ARGS2(2, dim3(threads))(d, n);                 // (3i + 3)^2
    rotate KERNEL_ARGS3(1, n, n * sizeof(int))(d, n);            // of the next
    increment<<<1, 32,
               0, 0>>>(
        d,
        n);                                                      // + 1
    addConstant<int, n> << < DIV_UP(n, 128), 128, 0 >> >(d, 7);   // + 7
    void (*const kernels[])(int *, int) = {increment, timesThree};
    for (auto kernel : kernels) (*kernel)<<<1, 128>>>(d, n);     // (x + 1) * 3
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(h, d, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        int v = 3 * ((i + 1) % n) + 3;
        if (h[i] != (v * v + 1 + 7 + 1) * 3) wrong++;
    }
    printf("first %d, last %d, %d wrong\n", h[0], h[n - 1], wrong);
    CHECK(cudaFree(d));
    return wrong != 0;
}

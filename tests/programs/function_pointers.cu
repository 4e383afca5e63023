// Shows: pointers to device functions: in a table, by a symbol, as a template's argument.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include "headers/error_check.h"

typedef int (*Operation)(int, int);

__device__ int plus(int a, int b) { return a + b; }
__device__ int minus(int a, int b) { return a - b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int larger(int a, int b) { return a > b ? a : b; }

__device__ Operation table[3] = {plus, minus, times};
__device__ Operation chosen = larger;

__global__ void byTable(const int *a, const int *b, int *c, int n, int which)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = table[which](a[i], b[i]);
}

__global__ void byArgument(const int *a, const int *b, int *c, int n, Operation op)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = (*op)(a[i], b[i]);
}

template <Operation op>
__global__ void byTemplate(const int *a, const int *b, int *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = op(a[i], op(a[i], b[i]));
}

int main()
{
    const int n = 300;
    int a[n], b[n], c[n], *d_a, *d_b, *d_c, wrong = 0;
    for (int i = 0; i < n; i++) a[i] = i % 19 - 9, b[i] = i % 11;
    checkCudaErrors(cudaMalloc(&d_a, sizeof(a)));
    checkCudaErrors(cudaMalloc(&d_b, sizeof(b)));
    checkCudaErrors(cudaMalloc(&d_c, sizeof(c)));
    checkCudaErrors(cudaMemcpy(d_a, a, sizeof(a), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_b, b, sizeof(b), cudaMemcpyHostToDevice));
    Operation h_op;
    checkCudaErrors(cudaMemcpyFromSymbol(&h_op, chosen, sizeof(Operation)));
    for (int version = 0; version < 5; version++) {
        if (version < 3) byTable<<<3, 128>>>(d_a, d_b, d_c, n, version);
        if (version == 3) byArgument<<<3, 128>>>(d_a, d_b, d_c, n, h_op);
        if (version == 4) byTemplate<times><<<3, 128>>>(d_a, d_b, d_c, n);
        getLastCudaError("operation");
        checkCudaErrors(cudaMemcpy(c, d_c, sizeof(c), cudaMemcpyDeviceToHost));
        long long sum = 0;
        for (int i = 0; i < n; i++) {
            const int want[5] = {a[i] + b[i], a[i] - b[i], a[i] * b[i], a[i] > b[i] ? a[i] : b[i], a[i] * a[i] * b[i]};
            wrong += c[i] != want[version];
            sum += c[i];
        }
        printf("version %d: sum %lld\n", version, sum);
    }
    printf("%d wrong\n", wrong);
    checkCudaErrors(cudaFree(d_a));
    checkCudaErrors(cudaFree(d_b));
    checkCudaErrors(cudaFree(d_c));
    return wrong != 0;
}

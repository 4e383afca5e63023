// Shows: more than 48 KB of dynamic shared memory, which a kernel must be allowed first.
// Provokes: shared memory over 48 KB
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
#include "headers/error_check.h"

// Reverses a whole row that fits into shared memory only.
__global__ void reverseRow(const int *in, int *out, int n)
{
    extern __shared__ int row[];
    in += (size_t)blockIdx.x * n;
    out += (size_t)blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = in[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = row[n - 1 - i];
}

int main()
{
    const int n = 16 * 1024, rows = 2;  // 64 KB a row
    const size_t rowBytes = n * sizeof(int);
    std::vector<int> in(rows * n), out(rows * n);
    for (int i = 0; i < rows * n; i++) in[i] = i * 3;
    int *d_in, *d_out, most = 0;
    checkCudaErrors(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    if ((size_t)most < rowBytes) {
        printf("this device has too little shared memory\n");
        return 1;
    }
    checkCudaErrors(cudaMalloc(&d_in, rows * rowBytes));
    checkCudaErrors(cudaMalloc(&d_out, rows * rowBytes));
    checkCudaErrors(cudaMemcpy(d_in, in.data(), rows * rowBytes, cudaMemcpyHostToDevice));

    // Without leave it is refused.
    reverseRow<<<rows, 256, rowBytes>>>(d_in, d_out, n);
    cudaError_t refused = cudaGetLastError();
    printf("without the attribute: %s\n", cudaGetErrorName(refused));

    checkCudaErrors(cudaFuncSetAttribute(reverseRow, cudaFuncAttributeMaxDynamicSharedMemorySize, rowBytes));
    reverseRow<<<rows, 256, rowBytes>>>(d_in, d_out, n);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaMemcpy(out.data(), d_out, rows * rowBytes, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < n; i++) wrong += out[r * n + i] != in[r * n + n - 1 - i];
    printf("with the attribute: %d wrong\n", wrong);
    checkCudaErrors(cudaFree(d_in));
    checkCudaErrors(cudaFree(d_out));
    return wrong != 0 || refused == cudaSuccess;
}

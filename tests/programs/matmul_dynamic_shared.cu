// Shows: tiles whose size the host chooses: dynamic shared memory in two parts.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define cudaCheck(expr)                                                                   \
    do {                                                                                  \
        cudaError_t status = (expr);                                                      \
        if (status != cudaSuccess) {                                                      \
            std::fprintf(stderr, "%s at line %d\n", cudaGetErrorString(status), __LINE__); \
            std::exit(EXIT_FAILURE);                                                      \
        }                                                                                 \
    } while (0)

__global__ void matmul(const int *A, const int *B, int *C, int width, unsigned Adz_sz, unsigned Bdz_sz)
{
    extern __shared__ char As_Bs[];
    int *As = (int *)As_Bs;
    int *Bs = (int *)(As_Bs + Adz_sz);
    const int tile = blockDim.x;

    int row = blockIdx.y * tile + threadIdx.y;
    int col = blockIdx.x * tile + threadIdx.x;
    int sum = 0;
    for (int t = 0; t < width; t += tile) {
        As[threadIdx.y * tile + threadIdx.x] = row < width && t + threadIdx.x < width
                                                   ? A[row * width + t + threadIdx.x] : 0;
        Bs[threadIdx.y * tile + threadIdx.x] = col < width && t + threadIdx.y < width
                                                   ? B[(t + threadIdx.y) * width + col] : 0;
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < tile; k++) sum += As[threadIdx.y * tile + k] * Bs[k * tile + threadIdx.x];
        __syncthreads();
    }
    if (row < width && col < width) C[row * width + col] = sum;
}

int main()
{
    const int width = 61, count = width * width;
    int *A = new int[count], *B = new int[count], *C = new int[count];
    for (int i = 0; i < count; i++) A[i] = i % 13 - 6, B[i] = i % 7 - 3;
    int *dA, *dB, *dC;
    cudaCheck(cudaMalloc(&dA, count * sizeof(int)));
    cudaCheck(cudaMalloc(&dB, count * sizeof(int)));
    cudaCheck(cudaMalloc(&dC, count * sizeof(int)));
    cudaCheck(cudaMemcpy(dA, A, count * sizeof(int), cudaMemcpyHostToDevice));
    cudaCheck(cudaMemcpy(dB, B, count * sizeof(int), cudaMemcpyHostToDevice));

    bool good = true;
    for (int tile : {4, 8, 16, 32}) {
        size_t bytes = tile * tile * sizeof(int);
        dim3 block(tile, tile), grid((width + tile - 1) / tile, (width + tile - 1) / tile);
        cudaCheck(cudaMemset(dC, 0xff, count * sizeof(int)));
        matmul<<<grid, block, 2 * bytes>>>(dA, dB, dC, width, bytes, bytes);
        cudaCheck(cudaGetLastError());
        cudaCheck(cudaMemcpy(C, dC, count * sizeof(int), cudaMemcpyDeviceToHost));
        int wrong = 0;
        long long trace = 0;
        for (int i = 0; i < width; i++)
            for (int j = 0; j < width; j++) {
                int sum = 0;
                for (int k = 0; k < width; k++) sum += A[i * width + k] * B[k * width + j];
                wrong += sum != C[i * width + j];
                if (i == j) trace += C[i * width + j];
            }
        std::printf("tile %2d: %d wrong, trace %lld\n", tile, wrong, trace);
        good = good && wrong == 0;
    }
    cudaCheck(cudaFree(dA));
    cudaCheck(cudaFree(dB));
    cudaCheck(cudaFree(dC));
    delete[] A;
    delete[] B;
    delete[] C;
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

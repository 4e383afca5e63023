// Shows: a product of matrices with tiles in shared memory, for sizes that are no multiples.
#include <cmath>
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

#include "headers/error_check.h"

#define TILE_WIDTH 16

__global__ void MatrixMulKernel(const float *M, const float *N, float *P, int rows, int inner, int columns)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];

    int bx = blockIdx.x;  int by = blockIdx.y;
    int tx = threadIdx.x; int ty = threadIdx.y;
    int Row = by * TILE_WIDTH + ty;
    int Col = bx * TILE_WIDTH + tx;

    float Pvalue = 0;
    for (int ph = 0; ph < (inner + TILE_WIDTH - 1) / TILE_WIDTH; ++ph) {
        if (Row < rows && ph * TILE_WIDTH + tx < inner)
            Mds[ty][tx] = M[Row * inner + ph * TILE_WIDTH + tx];
        else
            Mds[ty][tx] = 0.0f;
        if (ph * TILE_WIDTH + ty < inner && Col < columns)
            Nds[ty][tx] = N[(ph * TILE_WIDTH + ty) * columns + Col];
        else
            Nds[ty][tx] = 0.0f;
        __syncthreads(); // the tiles are complete

        for (int k = 0; k < TILE_WIDTH; ++k) {
            Pvalue += Mds[ty][k] * Nds[k][tx];
        }
        __syncthreads(); // the tiles may be overwritten
    }
    if (Row < rows && Col < columns)
        P[Row * columns + Col] = Pvalue;
}

int main()
{
    const int rows = 50, inner = 77, columns = 39;
    std::vector<float> M(rows * inner), N(inner * columns), P(rows * columns);
    for (size_t i = 0; i < M.size(); i++) M[i] = std::sin(i * 0.1f);
    for (size_t i = 0; i < N.size(); i++) N[i] = std::cos(i * 0.2f);

    float *d_M, *d_N, *d_P;
    checkCudaErrors(cudaMalloc(&d_M, M.size() * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_N, N.size() * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_P, P.size() * sizeof(float)));
    checkCudaErrors(cudaMemcpy(d_M, M.data(), M.size() * sizeof(float), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_N, N.data(), N.size() * sizeof(float), cudaMemcpyHostToDevice));

    dim3 threads(TILE_WIDTH, TILE_WIDTH, 1);
    dim3 blocks((columns - 1) / TILE_WIDTH + 1, (rows - 1) / TILE_WIDTH + 1, 1);
    MatrixMulKernel<<<blocks, threads>>>(d_M, d_N, d_P, rows, inner, columns);
    getLastCudaError("MatrixMulKernel");
    checkCudaErrors(cudaMemcpy(P.data(), d_P, P.size() * sizeof(float), cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            double sum = 0;
            for (int k = 0; k < inner; k++) sum += (double)M[i * inner + k] * N[k * columns + j];
            if (std::fabs(sum - P[i * columns + j]) > 1e-4) wrong++;
        }
    printf("%d x %d x %d: %s\n", rows, inner, columns, wrong ? "FAILED" : "PASSED");

    checkCudaErrors(cudaFree(d_M));
    checkCudaErrors(cudaFree(d_N));
    checkCudaErrors(cudaFree(d_P));
    return wrong != 0;
}

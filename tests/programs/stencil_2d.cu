// Shows: a 2-D five-point stencil with a halo loaded by the edge threads of a block.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "headers/error_check.h"

#define BDIMX 16
#define BDIMY 8

__constant__ float weights[5];

__global__ void five_point(const float *__restrict__ in, float *__restrict__ out, int nx, int ny)
{
    __shared__ float tile[BDIMY + 2][BDIMX + 2];
    const int ix = blockIdx.x * BDIMX + threadIdx.x;
    const int iy = blockIdx.y * BDIMY + threadIdx.y;
    const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    auto load = [&](int x, int y) -> float {
        return (x >= 0 && x < nx && y >= 0 && y < ny) ? in[y * nx + x] : 0.f;
    };
    tile[ty][tx] = load(ix, iy);
    if (threadIdx.x == 0) tile[ty][0] = load(ix - 1, iy);
    if (threadIdx.x == BDIMX - 1) tile[ty][BDIMX + 1] = load(ix + 1, iy);
    if (threadIdx.y == 0) tile[0][tx] = load(ix, iy - 1);
    if (threadIdx.y == BDIMY - 1) tile[BDIMY + 1][tx] = load(ix, iy + 1);
    __syncthreads();

    if (ix >= nx || iy >= ny) return;
    out[iy * nx + ix] = weights[0] * tile[ty][tx] + weights[1] * tile[ty][tx - 1] +
                        weights[2] * tile[ty][tx + 1] + weights[3] * tile[ty - 1][tx] +
                        weights[4] * tile[ty + 1][tx];
}

int main()
{
    const int nx = 75, ny = 43;
    std::vector<float> in(nx * ny), out(nx * ny);
    for (int i = 0; i < nx * ny; i++) in[i] = (float)(i % 17 - 8);
    const float w[5] = {-4.f, 1.f, 2.f, 0.5f, 0.25f};
    checkCudaErrors(cudaMemcpyToSymbol(weights, w, sizeof(w)));

    float *d_in, *d_out;
    const size_t bytes = nx * ny * sizeof(float);
    checkCudaErrors(cudaMalloc(&d_in, bytes));
    checkCudaErrors(cudaMalloc(&d_out, bytes));
    checkCudaErrors(cudaMemcpy(d_in, in.data(), bytes, cudaMemcpyHostToDevice));
    dim3 block(BDIMX, BDIMY), grid((nx + BDIMX - 1) / BDIMX, (ny + BDIMY - 1) / BDIMY);
    five_point<<<grid, block>>>(d_in, d_out, nx, ny);
    getLastCudaError("five_point");
    checkCudaErrors(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));

    auto at = [&](int x, int y) { return x < 0 || x >= nx || y < 0 || y >= ny ? 0.f : in[y * nx + x]; };
    int wrong = 0;
    for (int y = 0; y < ny; y++)
        for (int x = 0; x < nx; x++) {
            float want = w[0] * at(x, y) + w[1] * at(x - 1, y) + w[2] * at(x + 1, y) + w[3] * at(x, y - 1) + w[4] * at(x, y + 1);
            if (out[y * nx + x] != want) wrong++;
        }
    printf("2-D stencil: %d of %d wrong\n", wrong, nx * ny);
    checkCudaErrors(cudaFree(d_in));
    checkCudaErrors(cudaFree(d_out));
    return wrong != 0;
}

// Shows: finite differences in 3-D: planes go through registers, the middle one is shared.
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>

#define RADIUS 2
#define TILE 8
#define CHECK_ERR(e) check_err((e), __LINE__)

static void check_err(cudaError_t e, int line)
{
    if (e != cudaSuccess) {
        fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(e));
        exit(1);
    }
}

__constant__ float stencil[RADIUS + 1];

__global__ void FiniteDifferences3D(float *output, const float *input, int dimx, int dimy, int dimz)
{
    __shared__ float tile[TILE + 2 * RADIUS][TILE + 2 * RADIUS];
    float infront[RADIUS], behind[RADIUS], current;
    const int tx = threadIdx.x + RADIUS, ty = threadIdx.y + RADIUS;
    const int outer = dimx + 2 * RADIUS, stride_z = outer * (dimy + 2 * RADIUS);
    int inputIndex = (blockIdx.y * TILE + ty) * outer + blockIdx.x * TILE + tx;

    // Planes before the first.
    for (int i = RADIUS - 2; i >= 0; i--) {
        behind[i] = input[inputIndex];
        inputIndex += stride_z;
    }
    behind[RADIUS - 1] = 0;
    current = input[inputIndex];
    int outputIndex = inputIndex;
    inputIndex += stride_z;
    for (int i = 0; i < RADIUS; i++) {
        infront[i] = input[inputIndex];
        inputIndex += stride_z;
    }

    for (int iz = 0; iz < dimz; iz++) {
        // Step to the next plane.
        for (int i = RADIUS - 1; i > 0; i--) behind[i] = behind[i - 1];
        behind[0] = current;
        current = infront[0];
#pragma unroll
        for (int i = 0; i < RADIUS - 1; i++) infront[i] = infront[i + 1];
        infront[RADIUS - 1] = input[inputIndex < stride_z * (dimz + 2 * RADIUS) ? inputIndex : 0];
        inputIndex += stride_z;
        outputIndex += stride_z;
        __syncthreads();

        if (threadIdx.y < RADIUS) {
            tile[threadIdx.y][tx] = input[outputIndex - RADIUS * outer];
            tile[threadIdx.y + TILE + RADIUS][tx] = input[outputIndex + TILE * outer];
        }
        if (threadIdx.x < RADIUS) {
            tile[ty][threadIdx.x] = input[outputIndex - RADIUS];
            tile[ty][threadIdx.x + TILE + RADIUS] = input[outputIndex + TILE];
        }
        tile[ty][tx] = current;
        __syncthreads();

        float value = stencil[0] * current;
#pragma unroll
        for (int i = 1; i <= RADIUS; i++)
            value += stencil[i] * (infront[i - 1] + behind[i - 1] + tile[ty - i][tx] + tile[ty + i][tx] +
                                   tile[ty][tx - i] + tile[ty][tx + i]);
        output[outputIndex] = value;
    }
}

int main()
{
    const int n = 16, outer = n + 2 * RADIUS, count = outer * outer * outer;
    const float weights[RADIUS + 1] = {-3.0f, 0.5f, 0.125f};
    float *h_in = (float *)malloc(count * sizeof(float)), *h_out = (float *)malloc(count * sizeof(float));
    for (int i = 0; i < count; i++) h_in[i] = (float)(i * 7 % 23 - 11);
    float *d_in, *d_out;
    CHECK_ERR(cudaMalloc((void **)&d_in, count * sizeof(float)));
    CHECK_ERR(cudaMalloc((void **)&d_out, count * sizeof(float)));
    CHECK_ERR(cudaMemcpy(d_in, h_in, count * sizeof(float), cudaMemcpyHostToDevice));
    CHECK_ERR(cudaMemset(d_out, 0, count * sizeof(float)));
    CHECK_ERR(cudaMemcpyToSymbol(stencil, weights, sizeof(weights)));
    // The first output plane is RADIUS; the kernel stands one plane before it.
    FiniteDifferences3D<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(d_out, d_in, n, n, n);
    CHECK_ERR(cudaGetLastError());
    CHECK_ERR(cudaMemcpy(h_out, d_out, count * sizeof(float), cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int z = RADIUS; z < n + RADIUS; z++)
        for (int y = RADIUS; y < n + RADIUS; y++)
            for (int x = RADIUS; x < n + RADIUS; x++) {
                const float *p = h_in + (z * outer + y) * outer + x;
                float want = weights[0] * p[0];
                for (int i = 1; i <= RADIUS; i++)
                    want += weights[i] * (p[i * outer * outer] + p[-i * outer * outer] + p[-i * outer] + p[i * outer] + p[-i] + p[i]);
                if (fabsf(h_out[(z * outer + y) * outer + x] - want) > 1e-4f) wrong++;
            }
    printf("%d x %d x %d grid, radius %d: %d wrong\n", n, n, n, RADIUS, wrong);
    CHECK_ERR(cudaFree(d_in));
    CHECK_ERR(cudaFree(d_out));
    free(h_in);
    free(h_out);
    return wrong != 0;
}

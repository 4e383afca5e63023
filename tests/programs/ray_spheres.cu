// Shows: spheres in constant memory, which rays of all pixels are tested against.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>
#include "headers/error_check.h"

#define SPHERES 12
#define DIM 64
#define NOTHING -1000000

// Whole numbers, so that every device sees the same; depth is that of a cone.
struct Sphere {
    int colour, radius, x, y, z;
    __host__ __device__ int hit(int ox, int oy, int *shade) const {
        int dx = ox - x, dy = oy - y, d2 = dx * dx + dy * dy;
        if (d2 >= radius * radius) return NOTHING;
        int depth = 0;
        while ((depth + 1) * (depth + 1) <= radius * radius - d2) depth++;
        *shade = depth * 100 / radius;
        return z + depth;
    }
};

__constant__ Sphere s[SPHERES];

template <class Spheres>
__host__ __device__ int trace(const Spheres &spheres, int x, int y)
{
    int colour = 0, maxz = NOTHING;
    for (int i = 0; i < SPHERES; i++) {
        int shade = 0, t = spheres[i].hit(x - DIM / 2, y - DIM / 2, &shade);
        if (t > maxz) {
            colour = spheres[i].colour * 1000 + shade;
            maxz = t;
        }
    }
    return colour;
}

__global__ void kernel(int *image)
{
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    image[x + y * blockDim.x * gridDim.x] = trace(s, x, y);
}

int main(void)
{
    Sphere temp[SPHERES];
    unsigned seed = 17;
    int *parts = (int *)temp;
    for (int i = 0; i < SPHERES * 5; i++) {
        seed = seed * 214013u + 2531011u;
        parts[i] = (int)(seed >> 16 & 63);
    }
    for (int i = 0; i < SPHERES; i++) {
        temp[i].radius = temp[i].radius % 10 + 6;
        temp[i].x -= 32;
        temp[i].y -= 32;
    }
    checkCudaErrors(cudaMemcpyToSymbol(s, temp, sizeof(Sphere) * SPHERES));
    int image[DIM * DIM], *dev, wrong = 0, covered = 0;
    checkCudaErrors(cudaMalloc(&dev, sizeof(image)));
    cudaEvent_t start, stop;
    checkCudaErrors(cudaEventCreate(&start));
    checkCudaErrors(cudaEventCreate(&stop));
    checkCudaErrors(cudaEventRecord(start, 0));
    kernel<<<dim3(DIM / 16, DIM / 16), dim3(16, 16)>>>(dev);
    getLastCudaError("kernel");
    checkCudaErrors(cudaEventRecord(stop, 0));
    checkCudaErrors(cudaEventSynchronize(stop));
    float elapsed = -1;
    checkCudaErrors(cudaEventElapsedTime(&elapsed, start, stop));
    checkCudaErrors(cudaMemcpy(image, dev, sizeof(image), cudaMemcpyDeviceToHost));
    for (int y = 0; y < DIM; y++)
        for (int x = 0; x < DIM; x++) {
            wrong += image[x + y * DIM] != trace(temp, x, y);
            covered += image[x + y * DIM] != 0;
        }
    printf("%d pixels covered, %d wrong\n", covered, wrong);
    checkCudaErrors(cudaEventDestroy(start));
    checkCudaErrors(cudaEventDestroy(stop));
    checkCudaErrors(cudaFree(dev));
    return wrong != 0 || elapsed < 0;
}
